import { Redis } from 'ioredis';
import {
  createRateLimiter,
  type Decision,
  type PolicyFields,
  type PolicyInput,
  type RateLimiter,
} from 'nestjs-weir';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { together } from '../support/limiters.js';

const K = { policy: 'p', key: 'k' };
const DAILY: PolicyInput = { rate: 100, period: '1d', sync: 'exact' };
const SMALL: PolicyInput = { ...DAILY, rate: 10 };

const figures = ({ remaining, limit }: Decision): number[] => [remaining, limit];

describe('limits that change on Redis', () => {
  let server: RedisProcess;
  let redis: Redis;
  let prefixes = 0;
  const limiters: RateLimiter[] = [];

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.adminUrl);
  });

  afterAll(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    redis.disconnect();
    await stopAll();
  });

  function open(policy: PolicyInput, prefix: string): RateLimiter {
    const limiter = createRateLimiter({
      policies: { p: policy },
      store: { type: 'redis', url: server.url, prefix, decisionTimeout: '5s' },
    });
    limiters.push(limiter);
    return limiter;
  }

  async function fleet(policy: PolicyInput, count: number): Promise<RateLimiter[]> {
    const prefix = `change${prefixes++}`;
    const nodes = Array.from({ length: count }, () => open(policy, prefix));
    await Promise.all(nodes.map((node) => node.ready()));
    return nodes;
  }

  function install(limiter: RateLimiter, revision: number, p: PolicyFields): void {
    limiter.prepare({ revision, policies: { p } })();
  }

  async function sizeOf(prefix: number): Promise<number> {
    const [key] = await redis.keys(`change${prefix}:{b*}:p:*`);
    return redis.strlen(key!);
  }

  it('a node that is behind is decided under the newer limit, and told so once', async () => {
    const [ahead, behind] = (await fleet(DAILY, 2)) as [RateLimiter, RateLimiter];
    const heard: number[] = [];
    behind.on('revision', ({ revision }) => heard.push(revision));
    await behind.tryAcquire({ ...K, cost: 50 });
    install(ahead, 2, SMALL);
    expect(figures(await ahead.peek(K))).toEqual([5, 10]);
    expect(figures(await behind.tryAcquire(K))).toEqual([4, 100]);
    const answers: Decision[] = [];
    for (let i = 0; i < 20; i++) {
      answers.push(await ahead.tryAcquire(K), await behind.tryAcquire(K));
    }
    expect(answers.filter(({ allowed }) => allowed)).toHaveLength(4);
    expect(heard).toEqual([2]);
    install(behind, 2, SMALL);
    expect(figures(await behind.peek(K))).toEqual([0, 10]);
    expect(heard).toEqual([2]);
  });

  it('state is as long as ever without a revision, and is read when one comes', async () => {
    const [node] = (await fleet(DAILY, 1)) as [RateLimiter];
    const prefix = prefixes - 1;
    await node.tryAcquire({ ...K, cost: 40 });
    expect(await sizeOf(prefix)).toBe(32);
    install(node, 1, SMALL);
    expect(figures(await node.tryAcquire(K))).toEqual([5, 10]);
    expect(await sizeOf(prefix)).toBe(73);
    install(node, 2, { ...SMALL, algorithm: 'sliding-window', sync: 'auto' });
    expect(figures(await node.tryAcquire(K))).toEqual([9, 10]);
  });

  it('a remembered denial does not outlive the limit that it is of', async () => {
    const [node] = (await fleet(SMALL, 1)) as [RateLimiter];
    await node.tryAcquire({ ...K, cost: 9 });
    expect(await node.tryAcquire({ ...K, cost: 2 })).toMatchObject({ allowed: false });
    install(node, 1, DAILY);
    expect(await node.tryAcquire({ ...K, cost: 2 })).toMatchObject({ allowed: true });
  });

  it('a take that is on its way is settled in the figures that it began with', async () => {
    const [node] = (await fleet(DAILY, 1)) as [RateLimiter];
    const before = node.tryAcquire(K);
    install(node, 1, SMALL);
    const after = node.tryAcquire(K);
    const answers = await together([before, after]);
    // 99 of 100 is 9.9 of 10.
    expect(answers.map(figures)).toEqual([
      [99, 100],
      [8, 10],
    ]);
    expect(node.stats().policies.p).toMatchObject({ allowed: 2 });
  });

  it('takes from before and after a change may wait for the same connection', async () => {
    const node = open(DAILY, `change${prefixes++}`);
    const before = node.tryAcquire(K);
    install(node, 1, SMALL);
    const after = node.tryAcquire(K);
    const answers = await together([before, after]);
    expect(answers.map(figures)).toEqual([
      [9, 100],
      [8, 10],
    ]);
  });

  it('what was taken before a change comes back into the same bucket', async () => {
    const [node] = (await fleet(DAILY, 1)) as [RateLimiter];
    await node.tryAcquire({ ...K, cost: 100 });
    install(node, 1, SMALL);
    await node.refund({ ...K, cost: 3 });
    expect(figures(await node.peek(K))).toEqual([3, 10]);
    await node.refund({ ...K, cost: 9 });
    expect(figures(await node.peek(K))).toEqual([10, 10]);
  });

  it('a waiter on Redis goes as soon as the new limit lets it', async () => {
    const [node] = (await fleet(DAILY, 1)) as [RateLimiter];
    await node.tryAcquire({ ...K, cost: 95 });
    let isServed = false;
    const waiter = node.acquire({ ...K, cost: 10 }).then(() => (isServed = true));
    expect((await node.peek(K)).remaining).toBe(5);
    expect(isServed).toBe(false);
    install(node, 1, { ...DAILY, rate: 1000 });
    await waiter;
    expect(figures(await node.peek(K))).toEqual([40, 1000]);
  });

  it('leased tokens go back before the limit changes, so that nothing is gained or lost', async () => {
    const leased: PolicyInput = { rate: 1000, period: '1d', sync: 'leased' };
    const [node] = (await fleet(leased, 1)) as [RateLimiter];
    const spend = async (): Promise<boolean> => {
      const answers = await together(Array.from({ length: 35 }, () => node.tryAcquire(K)));
      return answers.some(({ source }) => source === 'local');
    };
    await until(spend, { what: 'a lease' });
    const { leased: before, allowed } = node.stats().policies.p!;
    for (let revision = 1; revision <= 10; revision++) {
      install(node, revision, { ...leased, rate: revision % 2 === 0 ? 1000 : 100 });
      await node.peek(K);
    }
    // Tokens that a call on its way has brought go back a moment later.
    const isBack = async (): Promise<boolean> => (await node.peek(K)).remaining === 1000 - allowed;
    await until(isBack, { what: `${1000 - allowed} tokens to be left` });
    expect(node.stats().policies.p).toMatchObject({ leased: before, allowed });
  });
});
