import { Redis } from 'ioredis';
import { createRateLimiter, type Decision, type RateLimiter, type StoreSwitch } from 'nestjs-weir';
import { type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import { type QuotaCall } from '../../lib/algorithms/quota/quota-protocol.js';
import { SystemClock } from '../../lib/common/clock.js';
import { seal } from '../../lib/stores/envelope.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { RedisQuota } from '../../lib/stores/redis/redis-quota.js';
import { RedisSharedCache } from '../../lib/stores/redis/redis-shared-cache.js';
import { type WeirRateLimiter } from '../../lib/limiter/weir-rate-limiter.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { wireOf } from '../../lib/stores/redis/wire.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  withRedis,
  type RedisProcess,
  type TcpProxy,
} from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';

const FIGURES: QuotaFigures = {
  cluster: undefined,
  apps: [
    {
      app: 'checkout',
      guaranteed: 100,
      burst: 100,
      burstDurationMs: 1000,
      priority: 0,
      elastic: true,
    },
  ],
  maxCost: 5,
  paceMs: 50,
  leaseTtlMs: 1000,
  reserveTarget: 0,
};

const resp = (...figures: number[]): Buffer =>
  Buffer.from(`*${figures.length}\r\n${figures.map((figure) => `:${figure}\r\n`).join('')}`);

/** The integers of a reply. */
function figuresOf(bytes: Buffer): number[] {
  return [...bytes.toString().matchAll(/:(-?\d+)\r\n/g)].map(([, figure]) => Number(figure));
}

const NO_REPLIES: [string, (reply: Buffer) => Buffer][] = [
  ['of another version, which names no call', (reply) => resp(...figuresOf(reply).slice(0, -1))],
  ['to the call before', (reply) => resp(...change(figuresOf(reply), -1, (call) => call - 1))],
  ['that is too short', (reply) => resp(...figuresOf(reply).slice(2))],
  ['that is too long', (reply) => resp(...change(figuresOf(reply), 1, (n) => n), 5, 5, 5)],
  [
    'with a wait of nobody',
    (reply) => {
      const figures = figuresOf(reply);
      return resp(...figures.slice(0, -1), 7, 1000, figures.at(-1)!);
    },
  ],
  ['that is an empty list', () => Buffer.from('*0\r\n')],
  ['that is nothing', () => Buffer.from('$-1\r\n')],
  ['that is a text', () => Buffer.from('+OK\r\n')],
  ['that is a number', () => Buffer.from(':1\r\n')],
  [
    'with a text for a level',
    (reply) => {
      const [now, , call] = figuresOf(reply);
      return Buffer.from(`*3\r\n:${now}\r\n$3\r\nNaN\r\n:${call}\r\n`);
    },
  ],
  [
    'in a list of its own',
    (reply) => {
      const [now, , call] = figuresOf(reply);
      return Buffer.from(`*3\r\n:${now}\r\n*1\r\n:5\r\n:${call}\r\n`);
    },
  ],
];

function change(figures: number[], at: number, to: (figure: number) => number): number[] {
  const index = at < 0 ? figures.length + at : at;
  return figures.with(index, to(figures[index]!));
}

describe('a reply that is not the one to its call', () => {
  let server: RedisProcess;
  let proxy: TcpProxy;
  const limiters: RateLimiter[] = [];

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startProxy({ targetPort: server.port });
  });

  afterEach(async () => {
    await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
    await stopAll();
  });

  async function open(store: { readonly client?: Redis } = {}): Promise<Patient> {
    const patient = new Patient(store.client === undefined ? { url: proxy.url } : store);
    limiters.push(patient.limiter);
    await patient.limiter.ready();
    // The first call brings a heartbeat along, and the scripts to the server.
    await patient.ask('warm-up');
    return patient;
  }

  it('is not booked for the next one, on a connection whose replies come twice', async () => {
    const patient = await open();
    await withRedis(server.port, async () => {
      expect(await patient.ask('empty', 5)).toMatchObject({ allowed: true, remaining: 0 });
    });
    const { connections } = proxy.stats;
    proxy.doubleNextReply();
    proxy.holdReplies();
    const full = patient.ask('full');
    await patient.sent();
    const empty = patient.ask('empty');
    await patient.sent();
    proxy.releaseReplies();
    expect(await full).toMatchObject({ allowed: true, source: 'store' });
    // It would be allowed by what was said of the other key.
    expect(await empty).toMatchObject({ allowed: false, source: 'fallback' });
    expect(patient.limiter.stats().store).toMatchObject({ strayReplies: 1, silences: 0 });
    expect(patient.switches).toMatchObject([
      { state: 'down', reason: { code: 'STORE_STRAY_REPLY' } },
    ]);
    await patient.recover();
    expect(proxy.stats.connections).toBe(connections + 1);
    expect(await patient.ask('empty')).toMatchObject({ allowed: false, source: 'store' });
  });

  it.each(NO_REPLIES)('%s: the failure mode, and another connection', async (_what, spoil) => {
    const patient = await open();
    const { connections } = proxy.stats;
    proxy.replaceNextReply(spoil);
    expect(await patient.ask('k')).toMatchObject({ allowed: false, source: 'fallback' });
    expect(patient.limiter.stats().store).toMatchObject({ strayReplies: 1, silences: 0 });
    await patient.recover();
    expect(proxy.stats.connections).toBe(connections + 1);
    const { source, remaining } = await patient.ask('k');
    expect(source).toBe('store');
    expect(remaining).toBeLessThan(5);
  });

  it('of a client of the user: the failure mode, and the client is left as it is', async () => {
    const client = new Redis(proxy.url);
    const patient = await open({ client });
    const { connections } = proxy.stats;
    proxy.replaceNextReply(() => Buffer.from('+OK\r\n'));
    expect(await patient.ask('k')).toMatchObject({ allowed: false, source: 'fallback' });
    expect(patient.limiter.stats().store).toMatchObject({ strayReplies: 1, silences: 0 });
    await patient.recover();
    expect(proxy.stats.connections).toBe(connections);
    expect(await patient.ask('k')).toMatchObject({ source: 'store' });
    client.disconnect();
  });

  it('of a reset: rejects', async () => {
    const { limiter } = await open();
    proxy.replaceNextReply(() => Buffer.from(':1\r\n'));
    await expect(limiter.reset({ policy: 'p', key: 'k' })).rejects.toMatchObject({
      code: 'STORE_STRAY_REPLY',
    });
  });

  it('of a heartbeat: the number of nodes stays as it was', async () => {
    const patient = await open();
    proxy.replaceNextReply(() => Buffer.from(':1000000\r\n'));
    patient.clock.advance(1001);
    await patient.ask('k');
    await until(() => patient.limiter.stats().store?.strayReplies === 1);
    expect((patient.limiter as WeirRateLimiter)['remote']!.nodes).toBe(1);
  });

  describe('on the connection of', () => {
    const clients: { disconnect(): void }[] = [];

    afterEach(() => {
      for (const client of clients.splice(0)) client.disconnect();
    });

    async function connected() {
      const { client } = connectRedis({ url: proxy.url });
      clients.push(client);
      await until(() => client.status === 'ready');
      return client;
    }

    /** Runs what spoils the connection, and waits for the one that takes its place. */
    async function replaced(client: { readonly status: string }, spoil: () => Promise<void>) {
      const { connections } = proxy.stats;
      await spoil();
      await until(() => proxy.stats.connections > connections && client.status === 'ready');
    }

    const callOf = (seq: number, incarnation: string): QuotaCall => {
      const apps = [{ app: 0, used: 0, returned: 0, demand: 10, needs: [], want: 10 }];
      return { node: 'a', incarnation, seq, seenEpoch: 0, seenSequence: 0, leaving: false, apps };
    };

    it.each([
      ['a call', callOf(2, '1'), callOf(3, '1')],
      ['a call of the same number', callOf(2, '1'), callOf(2, '2')],
    ])('a quota: what was granted to %s is not granted to the next', async (_what, one, next) => {
      const client = await connected();
      const settings = { client, prefix: 'weir', clusterId: 'shop', figures: FIGURES };
      const quota = new RedisQuota({ ...settings, timeoutMs: 5000 }, new SystemClock());
      await quota.settle(callOf(1, '1'));
      await replaced(client, async () => {
        proxy.doubleNextReply();
        const answers = [quota.settle(one), quota.settle(next)];
        const [first, second] = await Promise.allSettled(answers);
        expect(first).toMatchObject({ status: 'fulfilled' });
        expect(second).toMatchObject({ reason: { code: 'STORE_STRAY_REPLY' } });
      });
      expect(wireOf(client).strayReplies).toBe(1);
      // Sent again it counts once, and has its own answer.
      const { apps } = await quota.settle(next);
      expect(apps).toMatchObject([{ app: 0, granted: 10 }]);
    });

    it('a quota that is asked how things stand: rejects, and connects anew', async () => {
      const client = await connected();
      const settings = { client, prefix: 'weir', clusterId: 'shop', figures: FIGURES };
      const quota = new RedisQuota({ ...settings, timeoutMs: 5000 }, new SystemClock());
      await quota.settle(callOf(1, '1'));
      for (const reply of ['+OK\r\n', ':1\r\n', '*3\r\n:1\r\n:2\r\n:3\r\n', '*1\r\n*0\r\n']) {
        await replaced(client, async () => {
          proxy.replaceNextReply(() => Buffer.from(reply));
          await expect(quota.status()).rejects.toMatchObject({ code: 'STORE_STRAY_REPLY' });
        });
      }
      expect(await quota.status()).toMatchObject({ nodes: 1 });
    });

    it('a configuration: rejects whatever was asked', async () => {
      const client = await connected();
      const config = new RedisConfig(
        { client, prefix: 'weir', timeoutMs: 5000 },
        new SystemClock(),
      );
      await config.read();
      const questions = [
        () => config.read(),
        () => config.history(5),
        () => config.acknowledgements(),
        () => config.acknowledge({ node: 'a', revision: 1, state: 'applied' } as never, 1000),
      ];
      for (const question of questions) {
        await replaced(client, async () => {
          proxy.replaceNextReply(() => Buffer.from('*2\r\n:0\r\n:1\r\n'));
          await expect(question()).rejects.toMatchObject({ code: 'STORE_STRAY_REPLY' });
        });
      }
      expect(await config.read()).toMatchObject({ revision: 0 });
    });

    it('the shared cache: an answer to another key is none', async () => {
      const client = await connected();
      const cache = new RedisSharedCache(
        { client, prefix: 'weir', isOwned: true },
        new SystemClock(),
      );
      const sealed = (body: string) => seal({ v: 1, t: 0, kind: 'json', body })!;
      await cache.set('yours', sealed('yours'), 10_000);
      await cache.set('mine', sealed('mine'), 10_000);
      await until(() => cache.stats().stored === 2);
      await replaced(client, async () => {
        proxy.doubleNextReply();
        const asked = [cache.get('yours', 5000), cache.get('mine', 5000)];
        const [yours, mine] = await Promise.allSettled(asked);
        expect(yours).toMatchObject({ value: { body: 'yours' } });
        expect(mine).toMatchObject({ reason: { code: 'STORE_STRAY_REPLY' } });
      });
      expect(cache.stats()).toMatchObject({ strayReplies: 1, hits: 1 });
      expect(await cache.get('mine', 5000)).toMatchObject({ body: 'mine' });
    });
  });
});

/** A limiter of one strict policy, with the time in our hands. */
class Patient {
  readonly clock = new ManualClock();
  readonly limiter: RateLimiter;
  readonly switches: StoreSwitch[] = [];

  constructor(store: { readonly url?: string; readonly client?: Redis }) {
    this.limiter = createRateLimiter({
      policies: { p: { rate: '5/h', sync: 'exact', failureMode: 'closed' } },
      store: { type: 'redis', ...store },
      clock: this.clock,
    });
    this.limiter.on('store', (event) => this.switches.push(event));
  }

  async ask(key: string, cost = 1): Promise<Decision> {
    return this.limiter.tryAcquire({ policy: 'p', key, cost });
  }

  /** Calls of one turn of the event loop travel together. */
  async sent(): Promise<void> {
    await new Promise((resolve) => setImmediate(resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }

  async recover(): Promise<void> {
    const answers = async (): Promise<boolean> => {
      await this.clock.advanceAsync(10);
      return this.switches.at(-1)?.state === 'up';
    };
    await until(answers, { intervalMs: 2, timeoutMs: 20_000, what: 'the store to answer again' });
  }
}
