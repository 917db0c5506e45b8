import { readFileSync } from 'node:fs';
import {
  createRateLimiter,
  type Decision,
  type PolicyFields,
  type PolicyInput,
  type RateLimiter,
} from 'nestjs-weir';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { SystemClock } from '../../lib/common/clock.js';
import { RedisStore } from '../../lib/stores/redis/redis-store.js';
import { CallKind, type RemoteAnswer } from '../../lib/stores/remote-store.js';
import { startRedis, stopAll, withRedis, type RedisProcess } from '../support/index.js';
import { together } from '../support/limiters.js';
import { compileLimit, type LimitSpec } from '../support/limits.js';

/** An hour, and not a whole number of sub-windows. */
const STEP_MS = 3_600_033.7;
const RATE = 50;
const NODE_TTL_MS = 600_000;

const FIGURES: Omit<LimitSpec, 'algorithm'> = {
  rate: RATE,
  periodMs: 1000,
  burst: RATE,
  maxDelayMs: Infinity,
  subWindows: 10,
};

const algorithms: [name: string, code: AlgorithmCode][] = [
  ['token bucket', AlgorithmCode.TokenBucket],
  ['leaky bucket', AlgorithmCode.LeakyPolicer],
  ['sliding window', AlgorithmCode.SlidingWindow],
];

describe('the clock of Redis', () => {
  let server: RedisProcess;
  let store: RedisStore;
  let keys = 0;

  beforeAll(async () => {
    server = await startRedis({ clock: 'stepped' });
    store = new RedisStore(
      {
        connection: { url: server.url },
        prefix: 'clock',
        decisionTimeoutMs: 60_000,
        maxBatch: 1,
        nodeId: 'clock',
        onSwitch: () => {},
      },
      new SystemClock(),
    );
    await store.ready(5000);
  });

  afterAll(async () => {
    await store.close();
    await stopAll();
  });

  /** A key whose requests the store decides by its own clock; time passes by steps of that clock. */
  class Caller {
    private readonly shared: {
      id: string;
      figures: ReturnType<typeof compileLimit>;
      revision: number;
    };

    constructor(code: AlgorithmCode, { revision = 0, periodMs = 1000 } = {}) {
      const limit = compileLimit({ ...FIGURES, periodMs, algorithm: code });
      this.shared = { id: `p${keys++}`, figures: limit, revision };
    }

    ask(kind: CallKind.Take | CallKind.Peek = CallKind.Take): Promise<RemoteAnswer> {
      return new Promise((resolve, reject) => {
        store.submit({
          kind,
          checks: [{ limit: this.shared, key: 'k', cost: 1 }],
          settled: ([answer]: readonly RemoteAnswer[]) => resolve(answer!),
          failed: reject,
          settledLate: () => {},
        });
      });
    }

    /** Takes all there is, and says when there was no more. */
    async drain(): Promise<{ taken: number; atMicros: number; waitMicros: number }> {
      for (let taken = 0; ; taken++) {
        const { allowed, nowMicros, waitMicros } = await this.ask();
        if (!allowed) return { taken, atMicros: nowMicros, waitMicros };
      }
    }

    /** Tokens per second while so much time passes and everybody asks for more than there is. */
    async rateOver(ms: number): Promise<number> {
      const begin = await this.drain();
      let taken = 0;
      for (;;) {
        server.stepClock(20);
        const found = await this.drain();
        taken += found.taken;
        const elapsed = found.atMicros - begin.atMicros;
        if (elapsed >= ms * 1000) return (taken * 1_000_000) / elapsed;
      }
    }
  }

  it.each(algorithms)('steps back by an hour: the rate of a %s flows on', async (_name, code) => {
    const caller = new Caller(code);
    await caller.drain();
    server.stepClock(-STEP_MS);
    const { taken, waitMicros } = await caller.drain();
    // The refill of the time that the clock itself has run on, and no more.
    expect(taken).toBeLessThan(RATE);
    expect(waitMicros).toBeLessThanOrEqual(1_000_000);
    const rate = await caller.rateOver(20_000);
    expect(rate).toBeGreaterThan(0.9 * RATE);
    expect(rate).toBeLessThan(1.1 * RATE);
  });

  it.each(algorithms)('steps back by an hour: a paced caller of a %s goes on', async (_n, code) => {
    const caller = new Caller(code);
    const pace = async (requests: number): Promise<number> => {
      let passed = 0;
      for (let i = 0; i < requests; i++) {
        server.stepClock(1000 / RATE);
        if ((await caller.ask()).allowed) passed++;
      }
      return passed;
    };
    expect(await pace(2 * RATE)).toBe(2 * RATE);
    server.stepClock(-STEP_MS);
    // The counts of a window may come to lie up to one sub-window later than they were.
    expect(await pace(RATE)).toBeGreaterThanOrEqual(0.9 * RATE - 1);
    expect(await pace(2 * RATE)).toBe(2 * RATE);
  });

  it.each(algorithms)('a %s that was only looked at fills again, too', async (_name, code) => {
    const caller = new Caller(code, { revision: 3 });
    await caller.drain();
    server.stepClock(-STEP_MS);
    await caller.ask(CallKind.Peek);
    server.stepClock(1500);
    expect((await caller.drain()).taken).toBeGreaterThanOrEqual(RATE);
  });

  it.each(algorithms)(
    'a %s whose clock stepped back is kept for as long as ever',
    async (_n, code) => {
      const caller = new Caller(code, { periodMs: 60_000 });
      await caller.drain();
      server.stepClock(-STEP_MS);
      await caller.drain();
      const [, ttlMs] = await withRedis(server.port, async (client) => {
        const [name] = await client.keys(`*p${keys - 1}*`);
        return [name, await client.pttl(name!)] as const;
      });
      expect(ttlMs).toBeGreaterThan(0);
      expect(ttlMs).toBeLessThanOrEqual(120_000);
    },
  );

  it('steps back by an hour: processes that died are soon no longer counted', async () => {
    const script = readFileSync(new URL('../../lua/heartbeat.lua', import.meta.url), 'utf8');
    await withRedis(server.port, async (client) => {
      const beat = (node: string): Promise<unknown> =>
        client.eval(script, 1, 'nodes', node, NODE_TTL_MS, 1, 0, 'call');
      await beat('dead');
      expect(await beat('alive')).toEqual([2, 0, 'call']);
      server.stepClock(-STEP_MS);
      expect(await beat('alive')).toEqual([2, 1, 'call']);
      server.stepClock(0.6 * NODE_TTL_MS);
      await beat('alive');
      server.stepClock(0.6 * NODE_TTL_MS);
      expect(await beat('alive')).toEqual([1, 1, 'call']);
    });
  });

  describe('with limiters that ask it for more than there is', () => {
    const LIMIT = 200;
    const limiters: RateLimiter[] = [];

    afterEach(async () => {
      await Promise.all(limiters.splice(0).map((limiter) => limiter.close()));
    });

    async function join(policy: PolicyFields): Promise<void> {
      const limiter = createRateLimiter({
        policies: { p: { rate: LIMIT, ...policy } as PolicyInput },
        store: { type: 'redis', url: server.url, prefix: `fleet${keys}`, decisionTimeout: '5s' },
      });
      limiters.push(limiter);
      await limiter.ready();
    }

    /** Asks for so long, and on until nothing is left: so much was admitted in so many seconds. */
    async function hammer(ms: number): Promise<{ admitted: number; seconds: number }> {
      const startMs = performance.now();
      let admitted = 0;
      for (;;) {
        const asked: (Decision | Promise<Decision>)[] = [];
        for (const limiter of limiters) {
          for (let i = 0; i < 20; i++) asked.push(limiter.tryAcquire({ policy: 'p', key: 'k' }));
        }
        const decisions = await together(asked);
        const allowed = decisions.filter((decision) => decision.allowed).length;
        admitted += allowed;
        const elapsedMs = performance.now() - startMs;
        if (elapsedMs >= ms && allowed === 0) return { admitted, seconds: elapsedMs / 1000 };
        await new Promise((resolve) => setTimeout(resolve, 1));
      }
    }

    it.each([['exact'], ['leased']] as const)('and a policy that is %s', async (sync) => {
      keys++;
      await join({ sync });
      await join({ sync });
      await hammer(300);
      server.stepClock(-STEP_MS);
      const after = await hammer(1000);
      // The bound holds through the step, and a second later the rate is what it was.
      expect(after.admitted).toBeLessThanOrEqual(LIMIT * (after.seconds + 1));
      const later = await hammer(2000);
      expect(later.admitted / later.seconds).toBeGreaterThan(0.9 * LIMIT);
      expect(later.admitted).toBeLessThan(1.1 * LIMIT * later.seconds);
    });
  });
});
