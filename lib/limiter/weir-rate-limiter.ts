import { Outcome } from '../algorithms/index.js';
import { EPOCH_CLOCK, SystemClock, type Cancel, type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { newNodeId } from '../common/ids.js';
import {
  CallKind,
  MemoryStore,
  RedisStore,
  type BucketTable,
  type RemoteStore,
} from '../stores/index.js';
import { Attempt } from './attempt.js';
import { decisive, type Decision, type DecisionSource } from './decision.js';
import { EventHub, type RateLimiterEvents } from './events.js';
import {
  checkLimiterOptions,
  checkStore,
  type MemoryStoreOptions,
  type RateLimiterOptions,
  type RedisStoreOptions,
} from './options.js';
import { isList, keyOf, PolicyBook } from './policy-book.js';
import { ask } from './question.js';
import { type BoundCheck } from './remembered-denial.js';
import {
  RateLimiter,
  type Acquire,
  type AcquireOptions,
  type AcquireRequest,
  type RateLimiterStats,
} from './rate-limiter.js';
import { SingleTake } from './single-take.js';
import { WaitingLine } from './waiting-line.js';

const DENIAL_SWEEP_MS = 10_000;
const READY_TIMEOUT_MS = 5000;

/** The limiter: policies on one side, stores on the other, and the way of a request between them. */
export class WeirRateLimiter extends RateLimiter {
  private readonly clock: Clock;
  private readonly memory: MemoryStore;
  private readonly remote: RemoteStore | undefined;
  private readonly policies: PolicyBook;
  private readonly events = new EventHub();
  private readonly lines = new Map<string, WaitingLine>();
  private readonly stopSweep: Cancel;
  private readonly outcome = new Outcome();
  private closed = false;

  constructor(options: RateLimiterOptions = {}) {
    super();
    checkLimiterOptions(options);
    const store = checkStore(options.store);
    this.clock = options.clock ?? new SystemClock();
    const idleTimeoutMs = durationMs(store.idleTimeout, 'store.idleTimeout');
    this.memory = new MemoryStore({ maxKeys: store.maxKeys, idleTimeoutMs }, this.clock);
    try {
      const isRemote = store.type === 'redis';
      this.policies = new PolicyBook(options.policies ?? {}, this.memory, isRemote, store.maxKeys);
      this.remote = this.openRemote(store, options.nodeId ?? newNodeId());
    } catch (error) {
      this.memory.close();
      throw error;
    }
    this.stopSweep = this.clock.every(DENIAL_SWEEP_MS, () => {
      this.policies.sweepDenials(this.clock.now());
    });
  }

  tryAcquire(request: Acquire): Decision | Promise<Decision> {
    if (isList(request)) return this.tryAcquireAll(request);
    const limit = this.policies.limitFor(request);
    const { table } = limit;
    if (table === undefined) return this.attempt([this.policies.check(request)], false);
    const { outcome, clock } = this;
    const cost = limit.costOf(request.cost);
    const key = keyOf(request);
    outcome.nowMicros = clock.now();
    table.take(key, cost, outcome);
    return limit.decide(limit.limit, outcome, clock, 'local');
  }

  allow(policy: string, key: string): boolean | Promise<boolean> {
    return isAllowed(this.tryAcquire({ policy, key }));
  }

  allowN(policy: string, key: string, cost: number): boolean | Promise<boolean> {
    return isAllowed(this.tryAcquire({ policy, key, cost }));
  }

  async acquire(request: Acquire, options: AcquireOptions = {}): Promise<Decision> {
    const timeoutMs = options.timeoutMs === Infinity ? undefined : options.timeoutMs;
    if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
      throw new InvalidArgumentError('timeoutMs', timeoutMs, 'a number of milliseconds from 0 on');
    }
    const checks = this.policies.checks(request);
    const buckets = checks.map(bucketName);
    const { policy, maxWaiters } = checks[0]!.shared;
    const task = {
      policy,
      maxWaiters,
      buckets,
      tryTake: () => this.tryAcquire(request),
      giveBack: (decision: Decision) => this.giveBack(request, decision),
    };
    return this.lineFor(buckets[0]!).join(task, { ...options, timeoutMs });
  }

  refund(request: Acquire): void | Promise<void> {
    return this.refundAll(this.policies.checks(request));
  }

  peek(request: AcquireRequest): Decision | Promise<Decision> {
    const check = this.policies.check(request);
    const { shared, cost } = check;
    const { remote } = this;
    if (shared.table !== undefined || remote === undefined) {
      return this.peekHere(check, shared.table!, 'local');
    }
    return ask(remote, CallKind.Peek, [check]).then((answers) => {
      if (answers === undefined) {
        return this.peekHere(check, shared.fallbackTable(remote.nodes), 'fallback');
      }
      const outcome = { ...answers[0]! };
      if (outcome.allowed) outcome.level += cost * shared.limit.perToken;
      return shared.describe(shared.limit, outcome, EPOCH_CLOCK, 'store');
    });
  }

  reset(request: AcquireRequest): void | Promise<void> {
    const check = this.policies.check(request);
    const { shared, key } = check;
    if (shared.table !== undefined) {
      shared.table.reset(key);
      return this.wake([check]);
    }
    shared.denials.forget(key);
    return this.remote?.reset(shared, key).then(() => this.wake([check]));
  }

  on<N extends keyof RateLimiterEvents>(
    name: N,
    listener: (event: RateLimiterEvents[N]) => void,
  ): () => void {
    return this.events.on(name, listener);
  }

  stats(): RateLimiterStats {
    return { keys: this.memory.size, policies: this.policies.counters() };
  }

  async ready(timeoutMs = READY_TIMEOUT_MS): Promise<void> {
    await this.remote?.ready(timeoutMs);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.stopSweep();
    for (const line of [...this.lines.values()]) line.close();
    this.closed = true;
    this.policies.close();
    this.memory.close();
    await this.remote?.close();
  }

  /** A policy that only watches has no part in whether the others are taken. */
  private tryAcquireAll(request: Acquire): Decision | Promise<Decision> {
    const checks = this.policies.checks(request);
    const isList = checks.length > 1;
    const enforced = checks.filter((check) => !check.shared.shadow);
    if (enforced.length === checks.length || !isList) return this.attempt(checks, isList);
    if (enforced.length === 0) return this.watch(checks);
    const decision = this.attempt(enforced, isList);
    const watched = checks.filter((check) => check.shared.shadow);
    if (decision instanceof Promise) {
      return decision.then((made) => this.watchIfAllowed(made, watched));
    }
    return this.watchIfAllowed(decision, watched);
  }

  private watchIfAllowed(decision: Decision, watched: readonly BoundCheck[]): Decision {
    if (decision.allowed) void this.watch(watched);
    return decision;
  }

  private watch(checks: readonly BoundCheck[]): Decision | Promise<Decision> {
    const decisions = checks.map((check) => this.attempt([check], false));
    return decisions.some((decision) => decision instanceof Promise)
      ? Promise.all(decisions.map((one) => Promise.resolve(one))).then(decisive)
      : decisive(decisions as Decision[]);
  }

  private attempt(checks: readonly BoundCheck[], isList: boolean): Decision | Promise<Decision> {
    const [first] = checks;
    if (!isList && this.remote !== undefined && first?.shared.table === undefined) {
      return new SingleTake(first!, this.remote, this.clock).begin();
    }
    return new Attempt(checks, isList, this.remote, this.clock).begin();
  }

  private peekHere(check: BoundCheck, table: BucketTable, source: DecisionSource): Decision {
    const { shared, key, cost } = check;
    const { outcome, clock } = this;
    outcome.nowMicros = clock.now();
    table.peek(key, cost, outcome);
    if (outcome.allowed) outcome.level += cost * table.limit.perToken;
    return shared.describe(table.limit, outcome, clock, source);
  }

  private refundAll(checks: readonly BoundCheck[]): void | Promise<void> {
    const elsewhere = checks.filter(({ shared }) => shared.table === undefined);
    for (const { shared, key, cost } of checks) {
      shared.denials.forget(key);
      shared.table?.refund(key, cost, this.clock.now());
    }
    if (elsewhere.length === 0 || this.remote === undefined) return this.wake(checks);
    return ask(this.remote, CallKind.Refund, elsewhere).then(() => this.wake(checks));
  }

  /**
   * What `acquire` took for a caller that is gone. A policy that only watches may have given
   * nothing, and a fallback gave nothing that the store could take back.
   */
  private giveBack(request: Acquire, decision: Decision): void {
    const sourceOf = ({ policy }: BoundCheck['shared']): DecisionSource => {
      return (decision.decisions?.find((part) => part.policy === policy) ?? decision).source;
    };
    const taken = this.policies
      .checks(request)
      .filter(({ shared }) => !shared.shadow && sourceOf(shared) !== 'fallback');
    if (taken.length > 0) void this.refundAll(taken);
  }

  private wake(checks: readonly BoundCheck[]): void {
    if (this.lines.size === 0) return;
    for (const bucket of checks.map(bucketName)) {
      for (const line of [...this.lines.values()]) line.wake(bucket);
    }
  }

  private lineFor(name: string): WaitingLine {
    const known = this.lines.get(name);
    if (known !== undefined) return known;
    const line = new WaitingLine(this.clock, () => {
      if (this.lines.get(name) === line) this.lines.delete(name);
    });
    this.lines.set(name, line);
    return line;
  }

  private openRemote(
    store: MemoryStoreOptions | RedisStoreOptions,
    nodeId: string,
  ): RemoteStore | undefined {
    if (store.type === 'memory') return undefined;
    const { client, url, options, cluster, prefix, maxBatch } = store;
    return new RedisStore(
      {
        connection: { client, url, options, cluster },
        prefix,
        maxBatch,
        nodeId,
        decisionTimeoutMs: durationMs(store.decisionTimeout, 'store.decisionTimeout'),
        onSwitch: (event) => this.events.emit('store', event),
      },
      this.clock,
    );
  }
}

/** A limiter without Nest: the same that `RateLimitModule` provides. */
export function createRateLimiter(options: RateLimiterOptions = {}): RateLimiter {
  return new WeirRateLimiter(options);
}

function bucketName({ shared, key }: BoundCheck): string {
  return `${shared.id}:${key}`;
}

function isAllowed(decision: Decision | Promise<Decision>): boolean | Promise<boolean> {
  return decision instanceof Promise ? decision.then((made) => made.allowed) : decision.allowed;
}
