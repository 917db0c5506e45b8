import { Redis } from 'ioredis';
import { type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import { createRateLimiter, type RateLimiter } from '../../lib/index.js';
import { type NodesOf } from '../../lib/stores/quota-store.js';
import { NodeRegistry } from '../../lib/stores/redis/node-registry.js';
import { RedisQuota } from '../../lib/stores/redis/redis-quota.js';
import { defineScripts } from '../../lib/stores/redis/scripts.js';
import { startRedis, stopAll, type RedisProcess } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';

const APP = { guaranteed: 100, burst: 100, burstDurationMs: 1000, priority: 0, elastic: true };
const FIGURES: QuotaFigures = {
  cluster: { capacity: 1000, burstRatio: 1.2, reservedRatio: 0.1 },
  apps: ['checkout', 'search'].map((app) => ({ app, ...APP })),
  maxCost: 1,
  paceMs: 50,
  leaseTtlMs: 1000,
  reserveTarget: 0,
};
const ALL = 'test:{shop}:nodes';
const SECOND_MICROS = 1_000_000;

/** A process that is counted, and what it has heard of the others. */
class Member {
  heardTimes = 0;
  /** Whether the count is one of all that there are. */
  isAll = false;
  private nodesOf: NodesOf = () => 0;

  constructor(
    readonly quota: RedisQuota,
    readonly clock: ManualClock,
    name: string,
    apps?: readonly string[],
  ) {
    quota.join(name, apps, (nodesOf, isAll) => {
      this.nodesOf = nodesOf;
      this.isAll = isAll;
      this.heardTimes++;
    });
  }

  /** The number of nodes that may serve each app, as of the next beat. */
  async beat(ms = 1000): Promise<number[]> {
    const before = this.heardTimes;
    this.clock.advance(ms);
    await until(() => this.heardTimes > before, { what: 'a beat' });
    return this.numbers;
  }

  get numbers(): number[] {
    return FIGURES.apps.map(({ app }) => this.nodesOf(app));
  }
}

describe('the nodes that may serve an app', () => {
  let server: RedisProcess;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.adminUrl);
  });

  beforeEach(() => client.flushall());

  afterAll(async () => {
    client.disconnect();
    await stopAll();
  });

  async function member(name: string, apps?: readonly string[]): Promise<Member> {
    const clock = new ManualClock();
    const settings = { client, prefix: 'test', clusterId: 'shop', figures: FIGURES };
    const made = new Member(
      new RedisQuota({ ...settings, timeoutMs: 2000 }, clock),
      clock,
      name,
      apps,
    );
    await until(() => made.heardTimes > 0, { what: 'the first beat' });
    return made;
  }

  async function nowMicros(): Promise<number> {
    const [seconds, micros] = await client.time();
    return Number(seconds) * SECOND_MICROS + Number(micros);
  }

  it('are those that name it and those that serve all, whether they have traffic or not', async () => {
    const gateway = await member('gateway');
    expect(gateway.numbers).toEqual([1, 1]);
    const checkout = await member('checkout', ['checkout']);
    await member('both', ['checkout', 'search']);
    expect(await gateway.beat()).toEqual([3, 2]);
    expect(await checkout.beat()).toEqual([3, 3]);
  });

  it('show themselves every second', async () => {
    const one = await member('one');
    one.clock.advance(999);
    expect(one.heardTimes).toBe(1);
    await one.beat(1);
    await one.beat(1000);
  });

  it('are fewer as soon as one leaves, and ten seconds after one was last seen', async () => {
    const stays = await member('stays');
    const leaves = await member('leaves');
    expect(await stays.beat()).toEqual([2, 2]);
    await leaves.quota.leave();
    expect(await stays.beat()).toEqual([1, 1]);
    await client.zadd(ALL, (await nowMicros()) - 9 * SECOND_MICROS, 'silent');
    expect(await stays.beat()).toEqual([2, 2]);
    await client.zadd(ALL, (await nowMicros()) - 11 * SECOND_MICROS, 'silent');
    expect(await stays.beat()).toEqual([1, 1]);
    expect(await client.zrange(ALL, 0, '-1')).toEqual(['stays']);
  });

  it('may be more than are counted, as long as the store has not seen a node twice', async () => {
    const members = [await member('all'), await member('one', ['checkout'])];
    expect(members.map(({ isAll }) => isAll)).toEqual([false, false]);
    for (const one of members) await one.beat();
    expect(members.map(({ isAll }) => isAll)).toEqual([true, true]);
    members[1]!.quota.serve('search');
    await members[1]!.beat();
    expect(members[1]!.isAll).toBe(true);
    await client.flushall();
    expect(await members[0]!.beat()).toEqual([1, 1]);
    expect(members[0]!.isAll).toBe(false);
    await members[1]!.beat();
    expect(await members[0]!.beat()).toEqual([2, 2]);
    expect(members[0]!.isAll).toBe(true);
  });

  it('of policies are no fewer because the store begins to count anew', async () => {
    const nodes = ['a', 'b', 'c'].map((name) => {
      const clock = new ManualClock();
      const scripts = defineScripts(client);
      return { clock, registry: new NodeRegistry(scripts, 'test:{nodes}', name, clock) };
    });
    const beat = async (): Promise<number[]> => {
      for (const { clock, registry } of nodes) {
        clock.advance(1000);
        registry.beatIfDue();
        // Redis answers in the order in which it was asked; a script that it lacks is sent again, in full.
        for (let round = 0; round < 2; round++) await client.ping();
      }
      return nodes.map(({ registry }) => registry.count);
    };
    expect(await beat()).toEqual([1, 2, 3]);
    expect(await beat()).toEqual([3, 3, 3]);
    await client.flushall();
    expect(await beat()).toEqual([3, 3, 3]);
    await client.flushall();
    expect(await beat()).toEqual([3, 3, 3]);
    nodes.pop();
    await client.zrem('test:{nodes}', 'c');
    expect(await beat()).toEqual([2, 2]);
  });

  it('do not live on because the clock has stepped back', async () => {
    const stays = await member('stays');
    await client.zadd(ALL, (await nowMicros()) + 3600 * SECOND_MICROS, 'silent');
    expect(await stays.beat()).toEqual([2, 2]);
    const seen = Number(await client.zscore(ALL, 'silent'));
    expect(seen).toBeLessThanOrEqual(await nowMicros());
  });

  it('are one more when a process serves an app that it has not named', async () => {
    const gateway = await member('gateway');
    const one = await member('one', ['checkout']);
    expect(one.numbers).toEqual([2, 2]);
    const before = one.heardTimes;
    one.quota.serve('search');
    await until(() => one.heardTimes > before, { what: 'a beat' });
    expect(one.numbers).toEqual([2, 2]);
    expect(await gateway.beat()).toEqual([2, 2]);
  });

  it('are those of all limiters, until they are closed', async () => {
    const open = async (apps?: readonly string[]): Promise<RateLimiter> => {
      const limiter = createRateLimiter({
        quota: {
          clusterId: 'shop',
          apps: { checkout: { guaranteed: 100 }, search: { guaranteed: 100 } },
          ...(apps && { local: { apps } }),
        },
        store: { type: 'redis', url: server.url, prefix: 'test', decisionTimeout: '1s' },
      });
      await limiter.ready();
      return limiter;
    };
    const limiters = [await open(), await open(['search'])];
    const sizes = (): Promise<number[]> => {
      return Promise.all([ALL, `${ALL}:checkout`, `${ALL}:search`].map((set) => client.zcard(set)));
    };
    const are = async (expected: number[]): Promise<boolean> => {
      return (await sizes()).join() === expected.join();
    };
    await until(() => are([1, 0, 1]), { what: 'both limiters to be counted' });
    await limiters[1]!.tryAcquire({ app: 'checkout' });
    await until(() => are([1, 1, 1]), { what: 'an app to be counted that was not named' });
    await Promise.all(limiters.map((limiter) => limiter.close()));
    expect(await sizes()).toEqual([0, 0, 0]);
  });
});
