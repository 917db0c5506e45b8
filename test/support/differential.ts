import { Outcome } from '../../lib/algorithms/algorithm.js';
import { type LeaseGrant } from '../../lib/algorithms/leased-bucket.js';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { type BucketTable } from '../../lib/stores/memory/bucket-table.js';
import { MemoryStore } from '../../lib/stores/memory/memory-store.js';
import { RedisStore } from '../../lib/stores/redis/redis-store.js';
import {
  CallKind,
  type LeaseCall,
  type RemoteAnswer,
  type RemoteCall,
  type SharedLimit,
} from '../../lib/stores/remote-store.js';
import { SystemClock } from '../../lib/common/clock.js';
import { PolicyRegistry } from '../../lib/limiter/policy-registry.js';
import { type PolicyInput } from '../../lib/limiter/policy-options.js';
import { type PolicyRequest } from '../../lib/limiter/rate-limiter.js';
import { ManualClock } from './manual-clock.js';
import { compileLimit, type LimitSpec } from './limits.js';

/** One step of a history: time passes (or steps back), then something is asked of one key. */
export interface Step {
  readonly gapMicros: number;
  readonly kind: RemoteCall['kind'];
  readonly key: string;
  readonly cost: number;
}

/** The answer of either side to a step, in the same units. */
export interface Verdict {
  readonly allowed: boolean;
  readonly level: number;
  readonly waitMicros: number;
}

let pairs = 0;

/**
 * The memory store and the Lua script beside each other: the same history, the same injected
 * microseconds, one step at a time.
 */
export class Pair {
  private readonly clock = new ManualClock(START_MICROS);
  private readonly memory = new MemoryStore({ maxKeys: 100_000, idleTimeoutMs: 1e9 }, this.clock);
  private readonly table: BucketTable;
  private readonly shared: SharedLimit;
  private readonly limit: Limit;

  constructor(
    spec: LimitSpec,
    private readonly lua: LuaSide,
  ) {
    // Redis forgets by its own clock, which here runs on while the injected one stands still.
    this.limit = { ...compileLimit(spec), ttlMs: 1e9 };
    this.table = this.memory.open(this.limit);
    this.shared = { id: `pair${pairs++}`, figures: this.limit, revision: 0 };
  }

  /** Asks both; the Lua side answers later, so that many steps can be on their way at once. */
  step({ gapMicros, kind, key, cost }: Step): { memory: Verdict; lua: Promise<Verdict> } {
    this.clock.jump(gapMicros);
    const fits = Math.min(cost, this.limit.capacity);
    const now = this.clock.now();
    return {
      memory: askTable(this.table, kind, key, fits, now),
      lua: this.lua.ask(kind, this.shared, key, fits, now),
    };
  }

  close(): void {
    this.memory.close();
  }
}

/**
 * The same for figures that come with the requests: one policy in memory, and one on the store, each
 * of which makes of them what it does.
 */
export class GivenPair {
  private readonly clock = new ManualClock(START_MICROS);
  private readonly memory = new MemoryStore({ maxKeys: 100_000, idleTimeoutMs: 1e9 }, this.clock);
  private readonly here: PolicyRegistry;
  private readonly there: PolicyRegistry;
  private readonly shared = new Map<string, SharedLimit>();

  constructor(
    policy: LimitSpec,
    private readonly lua: LuaSide,
  ) {
    const policies = { [`given${pairs++}`]: policyOf(policy) };
    this.here = new PolicyRegistry(policies, this.memory, false, 100_000, this.clock);
    this.there = new PolicyRegistry(policies, this.memory, true, 100_000, this.clock);
  }

  step(
    { rate, periodMs: period, burst, algorithm }: LimitSpec,
    { gapMicros, kind, key, cost }: Step,
  ): { memory: Verdict; lua: Promise<Verdict> } {
    this.clock.jump(gapMicros);
    const isWindow = algorithm === AlgorithmCode.SlidingWindow;
    const [policy] = this.here.names() as [string];
    const request = { policy, key, limit: isWindow ? { rate, period } : { rate, period, burst } };
    const { table } = this.here.limitFor(request);
    const fits = Math.min(cost, table!.limit.capacity);
    const now = this.clock.now();
    return {
      memory: askTable(table!, kind, key, fits, now),
      lua: this.lua.ask(kind, this.sharedOf(request), key, fits, now),
    };
  }

  close(): void {
    this.memory.close();
  }

  private sharedOf(request: PolicyRequest): SharedLimit {
    const { id, figures, revision } = this.there.limitFor(request);
    let shared = this.shared.get(id);
    // Redis forgets by its own clock, which here runs on while the injected one stands still.
    if (shared === undefined) shared = { id, figures: { ...figures, ttlMs: 1e9 }, revision };
    this.shared.set(id, shared);
    return shared;
  }
}

function policyOf({ algorithm, subWindows, maxDelayMs }: LimitSpec): PolicyInput {
  switch (algorithm) {
    case AlgorithmCode.SlidingWindow:
      return { algorithm: 'sliding-window', rate: 1, subWindows };
    case AlgorithmCode.LeakyShaper:
      return {
        ...{ algorithm: 'leaky-bucket', mode: 'shaper', rate: 1 },
        ...(maxDelayMs < Infinity && { maxDelay: maxDelayMs }),
      };
    case AlgorithmCode.LeakyPolicer:
      return { algorithm: 'leaky-bucket', rate: 1 };
    case AlgorithmCode.TokenBucket:
      return { rate: 1 };
  }
}

function askTable(
  table: BucketTable,
  kind: CallKind,
  key: string,
  cost: number,
  now: number,
): Verdict {
  const outcome = new Outcome();
  outcome.nowMicros = now;
  if (kind === CallKind.Refund) table.refund(key, cost, now);
  else if (kind === CallKind.Peek) table.peek(key, cost, outcome);
  else table.take(key, cost, outcome);
  const { allowed, level, waitMicros } = outcome;
  return kind === CallKind.Refund ? NOTHING : { allowed, level, waitMicros };
}

/** An epoch instant, because that is what Redis counts from. */
const START_MICROS = 1_700_000_000_000_000;
const NOTHING: Verdict = { allowed: true, level: 0, waitMicros: 0 };

/** The script on a real Redis, with the instant of each step passed in. */
export class LuaSide {
  private now = 0;
  private readonly store: RedisStore;

  constructor(url: string) {
    this.store = new RedisStore(
      {
        connection: { url },
        prefix: 'differential',
        decisionTimeoutMs: 60_000,
        maxBatch: 1,
        nodeId: 'differential',
        onSwitch: () => {},
        scriptNow: () => this.now,
      },
      new SystemClock(),
    );
  }

  ready(): Promise<void> {
    return this.store.ready(5000);
  }

  close(): Promise<void> {
    return this.store.close();
  }

  lease(
    call: Pick<LeaseCall, 'limit' | 'key' | 'want' | 'report'>,
    now: number,
  ): Promise<LeaseGrant> {
    this.now = now;
    return new Promise((resolve, reject) => {
      const settledLate = (): void => {};
      this.store.submit({
        kind: CallKind.Lease,
        ...call,
        settled: resolve,
        failed: reject,
        settledLate,
      });
    });
  }

  /** A batch of one leaves at once, so `now` is this call's. */
  ask(
    kind: RemoteCall['kind'],
    limit: SharedLimit,
    key: string,
    cost: number,
    now: number,
    takenAtMicros?: number,
  ): Promise<Verdict> {
    this.now = now;
    return new Promise((resolve, reject) => {
      this.store.submit({
        kind,
        checks: [{ limit, key, cost }],
        takenAtMicros,
        settled: (answers: readonly RemoteAnswer[]) => {
          const { allowed, level, waitMicros } = answers[0]!;
          resolve({ allowed, level, waitMicros });
        },
        failed: reject,
        settledLate: () => {},
      });
    });
  }
}
