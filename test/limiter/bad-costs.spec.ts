import {
  createRateLimiter,
  type Acquire,
  type PolicyInput,
  type RateLimiter,
  type StoreInput,
} from 'nestjs-weir';
import { errorWith } from '../support/errors.js';
import { startRedis, stopAll, type RedisProcess } from '../support/index.js';

const CAPACITY = 20;
const MAX_COST = 5;

const policies: Record<string, PolicyInput> = {
  bucket: { rate: CAPACITY, period: '1h' },
  policer: { algorithm: 'leaky-bucket', rate: CAPACITY, period: '1h' },
  shaper: { algorithm: 'leaky-bucket', mode: 'shaper', rate: CAPACITY, period: '1h' },
  window: { algorithm: 'sliding-window', rate: CAPACITY, period: '1h' },
};

/** Costs that no request may have, and nobody can give back. */
const BAD: readonly unknown[] = [
  ...[NaN, Infinity, -Infinity, -1, -5, 0, -0, 0.5, 1.5, 4.999],
  ...[CAPACITY + 1, 1e9, 2 ** 53, 1e308, Number.MAX_VALUE],
  ...['3', '', 'many', null, true, false, 3n, [], [3], {}, { valueOf: () => 3 }],
  ...[Symbol('3'), () => 3, new Date(3), new Number(3)],
];

/** Every call that takes a cost, of one subject and among others that are right. */
type Call = (limiter: RateLimiter, request: object) => unknown;
const CALLS: Record<string, Call> = {
  tryAcquire: (limiter, request) => limiter.tryAcquire(request as Acquire),
  acquire: (limiter, request) => limiter.acquire(request as Acquire),
  refund: (limiter, request) => limiter.refund(request as Acquire),
  'tryAcquire of a list': (limiter, request) => limiter.tryAcquire(among(request)),
  'acquire of a list': (limiter, request) => limiter.acquire(among(request)),
  'refund of a list': (limiter, request) => limiter.refund(among(request)),
};
const POLICY_CALLS: Record<string, Call> = {
  ...CALLS,
  allowN: (limiter, request) => {
    const { policy, key, cost } = request as { policy: string; key: string; cost: number };
    return limiter.allowN(policy, key, cost);
  },
  peek: (limiter, request) => limiter.peek(request as never),
  reset: (limiter, request) => limiter.reset(request as never),
};

/** Requests before the one that is wrong must not be taken either. */
function among(request: object): Acquire {
  const good = [
    { app: 'other', cost: 1 },
    { policy: 'bucket', key: 'other', cost: 1 },
  ];
  return [...good, request] as unknown as Acquire;
}

async function outcomeOf(call: Call, limiter: RateLimiter, request: object): Promise<unknown> {
  try {
    await call(limiter, request);
    return 'no error';
  } catch (error) {
    return error;
  }
}

describe.each(['memory', 'redis'] as const)('a cost that cannot be, on %s', (type) => {
  let server: RedisProcess;
  let limiter: RateLimiter;

  beforeAll(async () => {
    let store: StoreInput = 'memory';
    if (type === 'redis') {
      server = await startRedis();
      store = { type, url: server.url, decisionTimeout: '10s' };
    }
    const quota = {
      maxCost: MAX_COST,
      apps: { shop: { guaranteed: CAPACITY }, other: { guaranteed: CAPACITY } },
    };
    limiter = createRateLimiter({ policies, quota, store });
    await limiter.ready(10_000);
    // So that there is something that could be given back.
    for (const app of ['shop', 'other']) await limiter.tryAcquire({ app, cost: 3 });
    for (const policy of Object.keys(policies)) {
      await limiter.tryAcquire({ policy, key: 'k', cost: 3 });
      await limiter.tryAcquire({ policy, key: 'other', cost: 3 });
    }
  });

  afterAll(async () => {
    await limiter.close();
    await stopAll();
  });

  const remainingOf = async (policy: string, key: string): Promise<number> =>
    (await limiter.peek({ policy, key })).remaining;

  describe.each(Object.keys(policies))('of the policy %s', (policy) => {
    it.each(Object.entries(POLICY_CALLS))(
      '%s: a typed error, and nothing moves',
      async (_, call) => {
        const before = [await remainingOf(policy, 'k'), await remainingOf('bucket', 'other')];
        for (const cost of BAD) {
          const error = await outcomeOf(call, limiter, { policy, key: 'k', cost });
          expect(error).toEqual(errorWith({ field: 'cost', value: cost }));
          expect((error as { code: string }).code).toMatch(
            /^(INVALID_ARGUMENT|COST_EXCEEDS_LIMIT)$/,
          );
        }
        expect([await remainingOf(policy, 'k'), await remainingOf('bucket', 'other')]).toEqual(
          before,
        );
      },
    );
  });

  describe('of a quota', () => {
    it.each(Object.entries(CALLS))('%s: a typed error, and nothing moves', async (_, call) => {
      const decided = () => {
        const { shop, other } = limiter.stats().quota!.apps;
        return [shop!.allowed, shop!.denied, other!.allowed, other!.denied];
      };
      const before = [decided(), await remainingOf('bucket', 'other')];
      for (const cost of [...BAD, MAX_COST + 1, CAPACITY]) {
        const error = await outcomeOf(call, limiter, { app: 'shop', cost });
        expect(error).toEqual(errorWith({ field: 'cost', value: cost }));
      }
      expect([decided(), await remainingOf('bucket', 'other')]).toEqual(before);
    });

    it('above maxCost the error says so', async () => {
      for (const name of ['tryAcquire', 'refund', 'acquire'] as const) {
        const request = { app: 'shop', cost: MAX_COST + 1 };
        expect(await outcomeOf(CALLS[name]!, limiter, request)).toEqual(
          errorWith({
            name: 'CostExceedsLimitError',
            code: 'COST_EXCEEDS_LIMIT',
            policy: 'shop',
            limit: MAX_COST,
            message: expect.stringContaining('maxCost') as string,
          }),
        );
      }
    });

    it('an app that is unknown can be given nothing back, and the rest of the list neither', async () => {
      const before = await remainingOf('bucket', 'other');
      for (const app of ['nobody', '', null, NaN, 7, 'toString', '__proto__']) {
        for (const call of Object.values(CALLS)) {
          const error = await outcomeOf(call, limiter, { app, cost: 1 });
          expect(error).toEqual(errorWith({ code: 'UNKNOWN_APP', field: 'app', value: app }));
        }
      }
      expect(await remainingOf('bucket', 'other')).toBe(before);
    });

    it('after all of that the gate is no wider than before', async () => {
      let denied = 0;
      for (let i = 0; i < 50 * CAPACITY && denied === 0; i++) {
        if (!(await limiter.tryAcquire({ app: 'shop', cost: MAX_COST })).allowed) denied++;
      }
      expect(denied).toBe(1);
      const { shop } = limiter.stats().quota!.apps;
      expect(shop!.tokens).toBeGreaterThanOrEqual(0);
      expect(shop!.tokens).toBeLessThanOrEqual(CAPACITY);
    });
  });
});

it('without a quota nothing can be given back to one', () => {
  const limiter = createRateLimiter({ policies });
  expect(() => limiter.refund({ app: 'shop' })).toThrow(errorWith({ field: 'app' }));
});
