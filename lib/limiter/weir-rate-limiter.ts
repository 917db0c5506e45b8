import { Outcome } from '../algorithms/index.js';
import { EPOCH_CLOCK, SystemClock, type Cancel, type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError, LimiterClosedError } from '../common/errors.js';
import { newNodeId } from '../common/ids.js';
import { plainObject } from '../common/validate.js';
import { LeaseDesk } from '../local/lease-desk.js';
import { CallKind, MemoryStore, RedisStore, type BucketTable } from '../stores/index.js';
import { Attempt } from './attempt.js';
import { type BoundLimit } from './bound-limit.js';
import { decisive, type Decision, type DecisionSource } from './decision.js';
import { newLimiterEvents, type RateLimiterEvents } from './events.js';
import {
  checkLimiterOptions,
  checkStore,
  type MemoryStoreOptions,
  type RateLimiterOptions,
  type RedisStoreOptions,
} from './options.js';
import { takeLeased } from './leased-take.js';
import { checkChange, type CheckedChange, type LimitsChange } from './limits-change.js';
import { keyOf, PolicyBook } from './policy-book.js';
import { type PolicyInput } from './policy-options.js';
import { type ClusterQuota } from './cluster-quota.js';
import { type QuotaBook } from './quota-book.js';
import { prepareQuota } from './quota-change.js';
import { openQuota } from './quota-opening.js';
import { checkQuota } from './quota-options.js';
import { ask } from './question.js';
import { type BoundCheck } from './remembered-denial.js';
import {
  RateLimiter,
  type Acquire,
  type AcquireOptions,
  type AcquireRequest,
  type PolicyInfo,
  type PolicyRequest,
  type QuotaRequest,
  type RateLimiterStats,
  type SharedRedis,
} from './rate-limiter.js';
import { SingleTake } from './single-take.js';
import { WaitingLine } from './waiting-line.js';

const DENIAL_SWEEP_MS = 10_000;
const READY_TIMEOUT_MS = 5000;
/** Of `acquire` calls for one quota. */
const MOST_WAITERS = 1000;

/** The limiter: policies on one side, stores on the other, and the way of a request between them. */
export class WeirRateLimiter extends RateLimiter {
  private readonly clock: Clock;
  private readonly memory: MemoryStore;
  private readonly remote: RedisStore | undefined;
  private readonly desk: LeaseDesk | undefined;
  private readonly policies: PolicyBook;
  private readonly quotaBook: QuotaBook | undefined;
  private latestChange: CheckedChange | undefined = undefined;
  private readonly events = newLimiterEvents();
  private readonly lines = new Map<string, WaitingLine>();
  private readonly linesOf = new Map<string, Set<WaitingLine>>();
  private readonly stopSweep: Cancel;
  private readonly outcome = new Outcome();
  private closed = false;
  private seenRevision = 0;

  constructor(options: RateLimiterOptions = {}) {
    super();
    checkLimiterOptions(options);
    const store = checkStore(options.store);
    this.clock = options.clock ?? new SystemClock();
    const idleTimeoutMs = durationMs(store.idleTimeout, 'store.idleTimeout');
    this.memory = new MemoryStore({ maxKeys: store.maxKeys, idleTimeoutMs }, this.clock);
    try {
      const isRemote = store.type === 'redis';
      this.policies = new PolicyBook(
        options.policies ?? {},
        this.memory,
        isRemote,
        store.maxKeys,
        this.clock,
      );
      const quota = options.quota === undefined ? undefined : checkQuota(options.quota);
      const nodeId = options.nodeId ?? newNodeId();
      const remote = this.openRemote(store, nodeId);
      this.remote = remote;
      this.desk = remote && new LeaseDesk(remote, this.clock);
      if (this.desk !== undefined) this.policies.leaseFrom(this.desk);
      this.quotaBook = quota && openQuota(quota, store, remote, nodeId, this.clock, this.events);
    } catch (error) {
      this.memory.close();
      throw error;
    }
    this.stopSweep = this.clock.every(DENIAL_SWEEP_MS, () => {
      this.policies.sweepDenials(this.clock.now());
    });
  }

  tryAcquire(request: Acquire): Decision | Promise<Decision> {
    if (isList(request)) return this.tryAcquireList(request);
    if (request?.app !== undefined) return this.quotas().decide(request);
    const limit = this.policies.limitFor(request);
    const { table } = limit;
    if (table === undefined) return this.takeShared(limit, request);
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
    plainObject('options', options, 'an object with timeoutMs and/or signal');
    if (options.signal !== undefined && !(options.signal instanceof AbortSignal)) {
      throw new InvalidArgumentError('signal', options.signal, 'an AbortSignal');
    }
    const timeoutMs = options.timeoutMs === Infinity ? undefined : options.timeoutMs;
    if (timeoutMs !== undefined && !(typeof timeoutMs === 'number' && timeoutMs >= 0)) {
      throw new InvalidArgumentError('timeoutMs', timeoutMs, 'a number of milliseconds from 0 on');
    }
    const { checks, quotas } = this.sort(request);
    const buckets = [...checks.map(bucketName), ...quotas.map(quotaName)];
    const limit = checks[0]?.shared;
    const task = {
      policy: limit?.policy ?? quotas[0]!.app,
      maxWaiters: limit?.maxWaiters ?? MOST_WAITERS,
      buckets,
      tryTake: () => this.tryAcquire(request),
      giveBack: (decision: Decision) => this.giveBack(checks, quotas, decision),
    };
    return this.lineFor(buckets).join(task, { ...options, timeoutMs });
  }

  refund(request: Acquire): void | Promise<void> {
    const { checks, quotas } = this.sort(request);
    this.refundQuotas(quotas);
    return this.refundAll(checks);
  }

  peek(request: PolicyRequest): Decision | Promise<Decision> {
    const check = this.policies.check(request);
    const { shared, key, cost } = check;
    const { remote } = this;
    if (shared.table !== undefined || remote === undefined) {
      return this.peekHere(check, shared.table!, 'local');
    }
    return ask(remote, CallKind.Peek, [check]).then((answers) => {
      const inHand = shared.leases?.tokensOf(key, this.clock.now()) ?? 0;
      if (answers === undefined) {
        if (inHand >= cost) return this.peekInHand(check, inHand);
        return this.peekHere(check, shared.fallbackTable(remote.nodes), 'fallback');
      }
      const outcome = { ...answers[0]! };
      if (outcome.allowed) outcome.level += cost * shared.limit.perToken;
      outcome.level = Math.min(shared.limit.full, outcome.level + inHand * shared.limit.perToken);
      if (inHand >= cost) Object.assign(outcome, { allowed: true, waitMicros: 0 });
      return shared.describe(shared.limit, outcome, EPOCH_CLOCK, 'store');
    });
  }

  reset(request: PolicyRequest): void | Promise<void> {
    const check = this.policies.check(request);
    const { shared, key } = check;
    if (shared.table !== undefined) {
      shared.table.reset(key);
      return this.wake([check]);
    }
    shared.denials.forget(key);
    shared.leases?.forget(key);
    return this.remote?.reset(shared, key).then(() => this.wake([check]));
  }

  define(policies: Readonly<Record<string, PolicyInput>>): void {
    if (this.closed) throw new LimiterClosedError();
    plainObject('policies', policies, 'an object of policies by name');
    this.policies.define(policies);
  }

  prepare(change: LimitsChange): () => void {
    if (this.closed) throw new LimiterClosedError();
    const checked = checkChange(change, this.latestChange);
    const { revision } = change;
    const commitQuota = prepareQuota(this.quotaBook, change);
    return () => {
      const isLater = revision > this.revision || this.revision === 0;
      if (this.closed || !isLater) return;
      const changed = this.policies.install(checked.checked, revision);
      this.latestChange = checked;
      // What goes back was leased under the old limits, and must not meet a call under the new ones.
      this.remote?.flush();
      commitQuota();
      this.wakeLimits(changed);
    };
  }

  get revision(): number {
    return this.policies.revision;
  }

  policy(name: string): PolicyInfo | undefined {
    return this.policies.info(name);
  }

  policyNames(): string[] {
    return this.policies.names();
  }

  on<N extends keyof RateLimiterEvents>(
    name: N,
    listener: (event: RateLimiterEvents[N]) => void,
  ): () => void {
    return this.events.on(name, listener);
  }

  get quota(): ClusterQuota {
    return this.quotas();
  }

  get redis(): SharedRedis | undefined {
    return this.remote && { client: this.remote.client, prefix: this.remote.prefix };
  }

  stats(): RateLimiterStats {
    const quota = this.quotaBook?.stats();
    const { memory, policies } = this;
    return { keys: memory.size, policies: policies.counters(), ...(quota && { quota }) };
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
    this.desk?.close();
    await this.quotaBook?.node.leave();
    this.memory.close();
    await this.remote?.close();
  }

  /** Quotas first: they are nearly always decided here, and what was taken can be put back. */
  private tryAcquireList(request: readonly AcquireRequest[]): Decision | Promise<Decision> {
    const { checks, quotas } = this.sort(request);
    if (quotas.length === 0) return this.tryAcquireAll(checks);
    const made: Decision[] = [];
    const next = (): Decision | Promise<Decision> => {
      const quota = quotas[made.length];
      if (quota === undefined) return this.afterQuotas(checks, quotas, made);
      const decision = this.quotas().decide(quota);
      const go = (one: Decision): Decision | Promise<Decision> => {
        if (!one.allowed) {
          this.refundQuotas(quotas.slice(0, made.length));
          return decisive([one]);
        }
        made.push(one);
        return next();
      };
      return decision instanceof Promise ? decision.then(go) : go(decision);
    };
    return next();
  }

  private afterQuotas(
    checks: readonly BoundCheck[],
    quotas: readonly QuotaRequest[],
    made: readonly Decision[],
  ): Decision | Promise<Decision> {
    if (checks.length === 0) return decisive(made);
    const join = (decision: Decision): Decision => {
      if (!decision.allowed) this.refundQuotas(quotas);
      const parts = decision.decisions ?? [decision];
      return decisive(decision.allowed ? [...made, ...parts] : parts);
    };
    const decision = this.tryAcquireAll(checks);
    return decision instanceof Promise ? decision.then(join) : join(decision);
  }

  /** A policy that only watches has no part in whether the others are taken. */
  private tryAcquireAll(checks: readonly BoundCheck[]): Decision | Promise<Decision> {
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

  private takeShared(limit: BoundLimit, request: PolicyRequest): Decision | Promise<Decision> {
    const key = keyOf(request);
    const cost = limit.costOf(request.cost);
    return takeLeased(limit, key, cost, this.clock) ?? this.askStore({ shared: limit, key, cost });
  }

  private askStore(check: BoundCheck): Decision | Promise<Decision> {
    return new SingleTake(check, this.remote!, this.clock).begin();
  }

  private attempt(checks: readonly BoundCheck[], isList: boolean): Decision | Promise<Decision> {
    const [first] = checks;
    if (!isList && this.remote !== undefined && first?.shared.table === undefined) {
      const { shared, key, cost } = first!;
      return takeLeased(shared, key, cost, this.clock) ?? this.askStore(first!);
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

  /** While the store is away: what is here is certain, and the rest unknown. */
  private peekInHand({ shared }: BoundCheck, tokens: number): Decision {
    const { outcome, clock } = this;
    outcome.nowMicros = clock.now();
    outcome.allowed = true;
    outcome.level = tokens * shared.limit.perToken;
    outcome.waitMicros = 0;
    return shared.describe(shared.limit, outcome, clock, 'local');
  }

  private refundAll(checks: readonly BoundCheck[]): void | Promise<void> {
    const now = this.clock.now();
    const elsewhere = checks.filter(({ shared, key, cost }) => {
      // The limit may have changed since the tokens were taken, but the bucket is the same.
      shared.latest().denials.forget(key);
      shared.table?.refund(key, cost, now);
      return shared.table === undefined && shared.leases?.putBack(key, cost, now) !== true;
    });
    if (elsewhere.length === 0 || this.remote === undefined) return this.wake(checks);
    return ask(this.remote, CallKind.Refund, elsewhere).then(() => this.wake(checks));
  }

  /**
   * What `acquire` took for a caller that is gone. A policy that only watches may have given
   * nothing, and a fallback gave nothing that the store could take back.
   */
  private giveBack(
    checks: readonly BoundCheck[],
    quotas: readonly QuotaRequest[],
    decision: Decision,
  ): void {
    const sourceOf = ({ policy }: BoundCheck['shared']): DecisionSource => {
      return (decision.decisions?.find((part) => part.policy === policy) ?? decision).source;
    };
    const taken = checks.filter(({ shared }) => !shared.shadow && sourceOf(shared) !== 'fallback');
    this.refundQuotas(quotas);
    if (taken.length > 0) void this.refundAll(taken);
  }

  private refundQuotas(quotas: readonly QuotaRequest[]): void {
    for (const quota of quotas) this.quotaBook?.giveBack(quota);
    if (this.lines.size > 0) this.wakeNames(quotas.map(quotaName));
  }

  private quotas(): QuotaBook {
    if (this.closed) throw new LimiterClosedError();
    if (this.quotaBook === undefined) {
      throw new InvalidArgumentError('app', undefined, 'a limiter with a quota in its options');
    }
    return this.quotaBook;
  }

  /** The checks of policies and the requests to quotas, each in its order. */
  private sort(request: Acquire): { checks: BoundCheck[]; quotas: QuotaRequest[] } {
    const requests = isList(request) ? request : [request];
    if (requests.length === 0) {
      throw new InvalidArgumentError('request', request, 'at least one policy and key, or app');
    }
    const quotas = requests.filter((one) => one?.app !== undefined);
    const rules = requests.filter((one) => one?.app === undefined);
    return { checks: rules.length === 0 ? [] : this.policies.checks(rules), quotas };
  }

  private wake(checks: readonly BoundCheck[]): void {
    if (this.lines.size === 0) return;
    this.wakeNames(checks.map(bucketName));
  }

  /** Who waits under a limit that has changed may have waited long enough, or in vain. */
  private wakeLimits(ids: ReadonlySet<string>): void {
    if (this.lines.size === 0 || ids.size === 0) return;
    this.wakeNames([...this.linesOf.keys()].filter((name) => ids.has(limitOfBucket(name))));
  }

  private wakeNames(buckets: readonly string[]): void {
    for (const bucket of buckets) {
      for (const line of [...(this.linesOf.get(bucket) ?? [])]) line.wake(bucket);
    }
  }

  /** The line of the first bucket, noted under all of them so that any can wake it. */
  private lineFor(buckets: readonly string[]): WaitingLine {
    const name = buckets[0]!;
    let line = this.lines.get(name);
    if (line === undefined) {
      const made = new WaitingLine(this.clock, () => this.endLine(name, made));
      line = made;
      this.lines.set(name, line);
    }
    for (const bucket of buckets) {
      const lines = this.linesOf.get(bucket);
      if (lines === undefined) this.linesOf.set(bucket, new Set([line]));
      else lines.add(line);
      line.noted.add(bucket);
    }
    return line;
  }

  private endLine(name: string, line: WaitingLine): void {
    if (this.lines.get(name) === line) this.lines.delete(name);
    for (const bucket of line.noted) {
      const lines = this.linesOf.get(bucket);
      lines?.delete(line);
      if (lines?.size === 0) this.linesOf.delete(bucket);
    }
  }

  /** The fleet has a configuration that this process has not heard of yet. Told once for each. */
  private seeRevision(revision: number): void {
    if (revision <= Math.max(this.seenRevision, this.revision)) return;
    this.seenRevision = revision;
    this.events.emit('revision', { revision });
  }

  private openRemote(
    store: MemoryStoreOptions | RedisStoreOptions,
    nodeId: string,
  ): RedisStore | undefined {
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
        onRevision: (revision) => this.seeRevision(revision),
      },
      this.clock,
    );
  }
}

/** A limiter without Nest: the same that `RateLimitModule` provides. */
export function createRateLimiter(options: RateLimiterOptions = {}): RateLimiter {
  return new WeirRateLimiter(options);
}

function isList(request: Acquire): request is readonly AcquireRequest[] {
  return Array.isArray(request);
}

function quotaName({ app }: QuotaRequest): string {
  return `quota:${app}`;
}

function bucketName({ shared, key }: BoundCheck): string {
  return `${shared.id}:${key}`;
}

/** The part of `bucketName` before the key: policy, tier and algorithm, none of which has a colon. */
function limitOfBucket(name: string): string {
  return name.split(':', 3).join(':');
}

function isAllowed(decision: Decision | Promise<Decision>): boolean | Promise<boolean> {
  return decision instanceof Promise ? decision.then((made) => made.allowed) : decision.allowed;
}
