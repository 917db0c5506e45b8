import { once } from 'node:events';
import { Redis } from 'ioredis';
import { type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import {
  type AppCall,
  type QuotaCall,
  type QuotaReply,
} from '../../lib/algorithms/quota/quota-protocol.js';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisQuota } from '../../lib/stores/redis/redis-quota.js';
import { errorWith } from '../support/errors.js';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';

const START_MICROS = 1_700_000_000_000_000;
const TICK_MICROS = 100_000;
const LIMITS = 'test:{shop}:limits';

/** Each app has a guarantee of its own, so that a mistaken identity shows. */
const GUARANTEED: Readonly<Record<string, number>> = { a: 100, b: 200, c: 300, d: 50 };

function figuresOf(apps: readonly string[], more: Partial<QuotaFigures> = {}): QuotaFigures {
  return {
    cluster: { capacity: 10_000, burstRatio: 1.2, reservedRatio: 0.1 },
    apps: apps.map((app) => {
      const guaranteed = GUARANTEED[app] ?? 10;
      return { app, guaranteed, burst: 1000, burstDurationMs: 60_000, priority: 1, elastic: true };
    }),
    maxCost: 5,
    paceMs: 50,
    leaseTtlMs: 1000,
    reserveTarget: 0,
    ...more,
  };
}

/** A process that numbers its apps in an order of its own, and asks for them by name. */
class Process {
  readonly store: RedisQuota;
  private seq = 0;
  private seen = { seenEpoch: 0, seenSequence: 0 };

  constructor(
    private readonly name: string,
    private names: readonly string[],
    client: Redis,
    now: () => number,
    figures = figuresOf(names),
  ) {
    const settings = { client, prefix: 'test', clusterId: 'shop', figures, timeoutMs: 5000 };
    this.store = new RedisQuota({ ...settings, scriptNow: now }, new SystemClock());
  }

  publish(names: readonly string[], revision: number, more: Partial<QuotaFigures> = {}) {
    this.names = [...this.names, ...names.filter((name) => !this.names.includes(name))];
    return this.store.publish(figuresOf(names, more), revision);
  }

  async call(asked: Readonly<Record<string, Partial<AppCall>>>): Promise<QuotaReply> {
    const apps = Object.entries(asked).map(([name, more]) => ({
      ...{ app: this.names.indexOf(name), used: 0, returned: 0, demand: 10, needs: [], want: 0 },
      ...more,
    }));
    const head = { node: this.name, incarnation: '1', seq: ++this.seq, leaving: false };
    const call: QuotaCall = { ...head, ...this.seen, apps };
    const reply = await this.store.settle(call);
    this.seen = { seenEpoch: reply.epoch, seenSequence: reply.sequence };
    return reply;
  }

  /** Tokens that were granted, by name. */
  async want(asked: Readonly<Record<string, number>>): Promise<Record<string, number>> {
    const wants = Object.entries(asked).map(([name, want]) => [name, { want }] as const);
    const { apps } = await this.call(Object.fromEntries(wants));
    return Object.fromEntries(apps.map(({ app, granted }) => [this.names[app]!, granted]));
  }
}

describe('the limits of a quota in Redis', () => {
  let server: RedisProcess;
  let client: Redis;
  let now = START_MICROS;

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl, { lazyConnect: true, enableOfflineQueue: false });
    await client.connect();
  });

  beforeEach(async () => {
    await client.flushall();
    now += 3_600_000_000;
  });

  afterAll(async () => {
    client.disconnect();
    await stopAll();
  });

  function processOf(name: string, apps: readonly string[]): Process {
    return new Process(name, apps, client, () => now);
  }

  async function outstanding(of: Process): Promise<Record<string, number>> {
    const { apps } = await of.store.status();
    return Object.fromEntries(Object.entries(apps).map(([app, own]) => [app, own.outstanding]));
  }

  describe('their revision', () => {
    it('is replaced by a later one only', async () => {
      const process = processOf('n', ['a']);
      expect(await process.publish(['a'], 3)).toEqual({ written: true, revision: 3 });
      const late = processOf('late', ['a']);
      expect(await late.publish(['a'], 2, { maxCost: 1 })).toEqual({ written: false, revision: 3 });
      expect(await late.publish(['a'], 3, { maxCost: 1 })).toEqual({ written: false, revision: 3 });
      expect(JSON.parse((await client.hget(LIMITS, 'figures'))!)).toMatchObject({ maxCost: 5 });
      expect(await late.publish(['a'], 4, { maxCost: 1 })).toEqual({ written: true, revision: 4 });
    });

    it('is what the code says only where there is none', async () => {
      await processOf('n', ['a']).want({ a: 1 });
      const other = new Process('m', ['a'], client, () => now, figuresOf(['a'], { maxCost: 1 }));
      await other.want({ a: 1 });
      expect(JSON.parse((await client.hget(LIMITS, 'figures'))!)).toMatchObject({ maxCost: 5 });
    });

    it('is written by one of many who race for it, and never goes back', async () => {
      const racers = Array.from({ length: 8 }, (_, i) => processOf(`n${i}`, ['a', `own-${i}`]));
      for (let revision = 1; revision <= 20; revision++) {
        const made = await Promise.all(
          racers.map((racer, i) => racer.publish(['a', `own-${i}`], revision - (i % 2))),
        );
        const writers = made.filter((one) => one.written && one.revision === revision);
        expect(writers).toHaveLength(1);
        expect(await client.hget(LIMITS, 'revision')).toBe(String(revision));
      }
      const names = JSON.parse((await client.hget(LIMITS, 'names'))!) as string[];
      expect(new Set(names).size).toBe(names.length);
    });

    it('is told along with a call where the limits are the same, and the call does not wait', async () => {
      const process = processOf('n', ['a']);
      const figures = figuresOf(['a']);
      await process.store.publish(figures, 1);
      const scripts = client as unknown as { weirSeedLimits(args: unknown[]): Promise<unknown> };
      const seed = scripts.weirSeedLimits.bind(client);
      let goOn = (): void => {};
      const held = new Promise<void>((resolve) => (goOn = resolve));
      scripts.weirSeedLimits = (args) => held.then(() => seed(args));
      process.store.apply(figures, 2);
      expect(await process.call({})).toMatchObject({ revision: 1 });
      goOn();
      await until(async () => (await client.hget(LIMITS, 'revision')) === '2');
      scripts.weirSeedLimits = () => Promise.reject(new Error('no need to tell it again'));
      now += TICK_MICROS;
      expect(await process.call({})).toMatchObject({ revision: 2 });
      // Other limits are waited for.
      process.store.apply({ ...figures, maxCost: 1 }, 3);
      await expect(process.call({})).rejects.toThrow('no need');
    });

    it('is told with every reply', async () => {
      const [writer, reader] = [processOf('w', ['a']), processOf('r', ['a'])];
      expect(await reader.call({})).toMatchObject({ revision: 0 });
      await writer.publish(['a'], 7);
      now += TICK_MICROS;
      expect(await reader.call({})).toMatchObject({ revision: 7 });
    });
  });

  describe('the numbers of their apps', () => {
    const SETS = [
      ['first', ['a', 'b'], ['b', 'c']],
      ['second', ['b', 'c'], ['a', 'b']],
    ] as const;

    it.each(SETS)(
      'are those of the record, whoever writes it: the %s of two who differ',
      async (_which, one, other) => {
        const [early, late] = [processOf('early', one), processOf('late', other)];
        const [only] = one.filter((app) => app !== 'b');
        const [missing] = other.filter((app) => app !== 'b');
        for (const round of [1, 2, 3]) {
          // The process that comes first after a loss has the say; each round it is the other one.
          const [first, second] = round % 2 === 1 ? [early, late] : [late, early];
          const [own, lacks] = round % 2 === 1 ? [only!, missing!] : [missing!, only!];
          await first.want({ [own]: 0, b: 0 });
          now += 200_000;
          expect(await first.want({ [own]: 3, b: 5 })).toEqual({ [own]: 3, b: 5 });
          // The app that the record does not have is left out, and nobody else gets its tokens.
          expect(await second.want({ [lacks]: 7, b: 2 })).toEqual({ b: 2 });
          expect(await outstanding(first)).toEqual({ [own]: 3, b: 7 });
          expect(await outstanding(second)).toEqual({ [own]: 3, b: 7 });
          await client.flushall();
        }
      },
    );

    it('go on where apps are added, and mean the same to those who have not heard of it', async () => {
      const [old, young] = [processOf('old', ['b', 'c']), processOf('young', ['b', 'c'])];
      const { epoch } = await old.call({ b: { want: 3 }, c: { want: 4 } });
      await young.publish(['a', 'b', 'c', 'd'], 1);
      expect(JSON.parse((await client.hget(LIMITS, 'names'))!)).toEqual(['b', 'c', 'a', 'd']);
      now += TICK_MICROS;
      expect(await old.call({ c: { used: 1 } })).toMatchObject({ epoch, revision: 1 });
      expect(await young.want({ a: 5, d: 6 })).toEqual({ a: 5, d: 6 });
      expect(await outstanding(old)).toEqual({ a: 5, b: 3, c: 3, d: 6 });
    });

    it('are read again by who knows fewer, also where the revision is the same', async () => {
      const [one, two] = [processOf('one', ['a']), processOf('two', ['a', 'b'])];
      await one.want({ a: 1 });
      expect(await two.want({ a: 1, b: 1 })).toEqual({ a: 1 });
      await client.flushall();
      await processOf('three', ['a', 'b']).want({ a: 1 });
      now += 2_000_000;
      await two.want({ a: 1, b: 1 });
      expect(await two.want({ a: 1, b: 1 })).toHaveProperty('b');
    });

    it('count at once for an app that is new, without waiting for the tick', async () => {
      const process = processOf('n', ['a']);
      const { epoch } = await process.call({ a: { want: 1 } });
      await process.publish(['a', 'b'], 1);
      const reply = await process.call({ b: { want: 2 } });
      expect(reply).toMatchObject({ epoch, revision: 1 });
      expect(reply.apps).toMatchObject([{ app: 1, granted: 2 }]);
    });

    it('stay empty for an app that is gone, whose leases are settled; it comes back to its own', async () => {
      const process = processOf('n', ['a', 'b', 'c']);
      await process.call({ a: { want: 1 }, b: { want: 10 }, c: { want: 2 } });
      await process.publish(['a', 'c'], 1);
      now += TICK_MICROS;
      const gone = await process.call({ b: { want: 5, needs: [{ cost: 1, count: 1 }], used: 4 } });
      expect(gone.apps).toMatchObject([{ app: 1, granted: 0, needs: [0], shortage: 'app' }]);
      expect(await outstanding(process)).toEqual({ a: 1, b: 6, c: 2 });
      // Not even what comes back is lent to it again.
      const back = await process.call({ b: { returned: 6, needs: [{ cost: 1, count: 1 }] } });
      expect(back.apps[0]).toMatchObject({ needs: [0] });
      expect(await outstanding(process)).toEqual({ a: 1, c: 2 });
      await process.publish(['c', 'b', 'a', 'd'], 2);
      expect(JSON.parse((await client.hget(LIMITS, 'names'))!)).toEqual(['a', 'b', 'c', 'd']);
      now += TICK_MICROS;
      // It has nothing from before, and earns it.
      expect(await process.want({ b: 5 })).toEqual({ b: 0 });
      now += 50_000;
      expect(await process.want({ b: 5 })).toEqual({ b: 5 });
      expect(await outstanding(process)).toEqual({ a: 1, b: 5, c: 2, d: 0 });
    });

    it('begin anew, with a new epoch, when hundreds of apps have come and gone', async () => {
      const process = processOf('n', ['a']);
      const { epoch } = await process.call({ a: { want: 1 } });
      for (let revision = 1; revision <= 6; revision++) {
        await process.publish(['a', ...many(revision)], revision, { maxCost: 1 });
        now += TICK_MICROS;
        await process.call({ a: { want: 1 } });
      }
      const names = JSON.parse((await client.hget(LIMITS, 'names'))!) as string[];
      expect(names.length).toBeLessThan(400);
      expect((await process.call({ a: { want: 1 } })).epoch).toBe(epoch + 1);
    });

    function many(revision: number): string[] {
      return Array.from({ length: 60 }, (_, i) => `app-${revision}-${i}`);
    }
  });

  it('are told when Redis is back to a process that changed them while it was away', async () => {
    const process = processOf('n', ['a']);
    await process.want({ a: 1 });
    const away = new Redis(server.adminUrl, { lazyConnect: true, enableOfflineQueue: false });
    await away.connect();
    const other = new Process('other', ['a'], away, () => now);
    await other.want({ a: 1 });
    away.disconnect();
    await once(away, 'end');
    other.store.apply(figuresOf(['a', 'b']), 1);
    await expect(other.call({ a: { want: 1 } })).rejects.toEqual(
      errorWith({ code: 'STORE_UNAVAILABLE' }),
    );
    expect(await client.hget(LIMITS, 'revision')).toBe('0');
    await away.connect();
    await other.call({ a: { want: 1 } });
    expect(await client.hget(LIMITS, 'revision')).toBe('1');
    away.disconnect();
  });
});
