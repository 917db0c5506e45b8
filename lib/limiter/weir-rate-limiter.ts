import { SystemClock, type Cancel, type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError, LimiterClosedError } from '../common/errors.js';
import { newNodeId } from '../common/ids.js';
import { plainObject, wholeAbove0 } from '../common/validate.js';
import { MOST_NAMES, type HotValue } from '../local/hot-values.js';
import { LeaseRegistry } from '../local/lease-registry.js';
import { MemoryStore } from '../stores/memory/memory-store.js';
import { type RedisStore } from '../stores/redis/redis-store.js';
import { createQuota, createRemoteStore, StoreWatch } from './create-stores.js';
import { type Decision } from './decision.js';
import { countOnce, passedAsExcess } from './excess.js';
import { type DeniedKeys } from './denied-keys.js';
import { newLimiterEvents, type RateLimiterEvents } from './events.js';
import { type LimitInput } from './given-limits.js';
import { checkChange, type CheckedChange, type LimitsChange } from './limits-change.js';
import {
  checkAcquireOptions,
  checkLimiterOptions,
  checkStore,
  type RateLimiterOptions,
} from './options.js';
import { peekAt, Refunds } from './peek-refund.js';
import { type OnIdleHot } from './policy-binder.js';
import { PolicyRegistry, splitRequest, type SplitRequest } from './policy-registry.js';
import { type PolicyInput } from './policy-options.js';
import { checkQuota } from './quota-options.js';
import { type QuotaRegistry } from './quota-registry.js';
import {
  isList,
  RateLimiter,
  type Acquire,
  type AcquireOptions,
  type AcquireRequest,
  type ClusterQuota,
  type PolicyInfo,
  type PolicyRequest,
  type QuotaRequest,
  type RateQuery,
  type RateLimiterStats,
  type SharedRedis,
} from './rate-limiter.js';
import { TakeAll, takeListHere } from './take-all.js';
import { take } from './take.js';
import { WaitingLines } from './waiting-lines.js';

const SWEEP_MS = 10_000;
const READY_TIMEOUT_MS = 5000;
const DEFAULT_HOT_VALUES = 10;

/** The limiter: policies on one side, stores on the other, and the way of a request between them. */
export class WeirRateLimiter extends RateLimiter {
  private readonly clock: Clock;
  private readonly memory: MemoryStore;
  private readonly remote: RedisStore | undefined;
  private readonly leaseRegistry: LeaseRegistry | undefined;
  private readonly policies: PolicyRegistry;
  private readonly quotaRegistry: QuotaRegistry | undefined;
  private latestChange: CheckedChange | undefined = undefined;
  private readonly events = newLimiterEvents();
  private readonly lines: WaitingLines;
  private readonly refunds: Refunds;
  private readonly lists: TakeAll;
  private readonly stopSweep: Cancel;
  private closed = false;
  private seenRevision = 0;
  private readonly checkQuota = (quota: QuotaRequest): void => this.quotas().check(quota);

  constructor(options: RateLimiterOptions = {}) {
    super();
    checkLimiterOptions(options);
    const store = checkStore(options.store);
    const { maxKeys } = store;
    const idleTimeoutMs = durationMs(store.idleTimeout, 'store.idleTimeout');
    const clock = options.clock ?? new SystemClock();
    const sweepIntervalMs = durationMs(store.sweepInterval, 'store.sweepInterval');
    const memory = new MemoryStore({ maxKeys, idleTimeoutMs, sweepIntervalMs }, clock);
    this.clock = clock;
    this.memory = memory;
    try {
      const isRemote = store.type === 'redis';
      const tellIdleHot: OnIdleHot = (policy, limit, nodes) => {
        this.events.emit('hot_idle', { policy, limit, nodes });
      };
      const around = [memory, isRemote, maxKeys, clock, tellIdleHot] as const;
      this.policies = new PolicyRegistry(options.policies ?? {}, ...around);
      const quota = options.quota === undefined ? undefined : checkQuota(options.quota);
      const nodeId = options.nodeId ?? newNodeId();
      const watch = new StoreWatch(clock, this.events);
      const remote = createRemoteStore(store, nodeId, clock, {
        onSwitch: (event) => {
          if (event.state === 'down') watch.lost('policies', event.reason);
          else watch.found('policies');
        },
        onReady: () => this.quotaRegistry?.node.hint(),
        onRevision: (revision) => this.seeRevision(revision),
      });
      this.remote = remote;
      this.leaseRegistry = remote && new LeaseRegistry(remote, clock);
      if (this.leaseRegistry !== undefined) this.policies.leaseFrom(this.leaseRegistry);
      this.quotaRegistry =
        quota && createQuota(quota, store, remote, nodeId, clock, this.events, watch);
    } catch (error) {
      memory.close();
      throw error;
    }
    this.lines = new WaitingLines(clock, this.remote !== undefined);
    this.refunds = new Refunds(this.quotaRegistry, this.remote, this.lines, clock);
    this.lists = new TakeAll(() => this.quotas(), this.remote, this.refunds, clock);
    this.stopSweep = clock.every(SWEEP_MS, () => this.policies.sweep(clock.now()));
  }

  tryAcquire(request: Acquire): Decision | Promise<Decision> {
    if (this.policies.hasExcess) return this.takeOrPassOver(request);
    return this.takeNow(request);
  }

  private takeNow(request: Acquire): Decision | Promise<Decision> {
    if (isList(request)) return this.takeList(request);
    if (request?.app !== undefined) return this.quotas().decide(request);
    return take(this.policies.limitFor(request), request, this.remote, this.clock);
  }

  private takeList(request: readonly AcquireRequest[]): Decision | Promise<Decision> {
    const decision = takeListHere(request, this.policies, this.clock);
    return decision ?? this.lists.take(this.split(request));
  }

  private takeOrPassOver(request: Acquire): Decision | Promise<Decision> {
    const decision = this.takeNow(request);
    return decision instanceof Promise
      ? decision.then((made) => this.passOver(request, made))
      : this.passOver(request, decision);
  }

  /** A denied request asks the excess of its policy, if there is one and it is this request's turn. */
  private passOver(request: Acquire, denied: Decision): Decision | Promise<Decision> {
    if (denied.allowed) return denied;
    const split = this.split(request);
    const denials = (denied.decisions ?? [denied]).filter(({ allowed }) => !allowed);
    const checks = this.policies.checksOver(split, denials);
    if (checks === undefined) return denied;
    const taken = this.lists.take({ ...split, checks });
    const settle = (made: Decision): Decision => {
      countOnce(split, denials, made);
      return made.allowed ? passedAsExcess(denied, made) : denied;
    };
    return taken instanceof Promise ? taken.then(settle) : settle(taken);
  }

  allow(policy: string, key: string, limit?: LimitInput): boolean | Promise<boolean> {
    const request = limit === undefined ? { policy, key } : { policy, key, limit };
    return isAllowed(this.tryAcquire(request));
  }

  allowN(
    policy: string,
    key: string,
    cost: number,
    limit?: LimitInput,
  ): boolean | Promise<boolean> {
    const request = limit === undefined ? { policy, key, cost } : { policy, key, cost, limit };
    return isAllowed(this.tryAcquire(request));
  }

  async acquire(request: Acquire, options: AcquireOptions = {}): Promise<Decision> {
    const checkedOptions = checkAcquireOptions(options);
    const split = this.split(request);
    const turn = {
      // A waiter asks again and again, which would be excess each time.
      tryTake: () => this.takeNow(request),
      giveBack: (decision: Decision) => this.refunds.giveBack(split, decision),
    };
    return this.lines.join(split, turn, checkedOptions);
  }

  refund(request: Acquire, decision?: Decision): void | Promise<void> {
    const check = (quota: QuotaRequest): void => this.quotas().checkRefund(quota);
    const split = splitRequest(request, this.policies, check);
    if (decision === undefined) return this.refunds.refund(split);
    return this.refunds.refund(this.policies.splitAsTaken(split, decision), decision);
  }

  peek(request: PolicyRequest): Decision | Promise<Decision> {
    return peekAt(this.policies.check(request), this.remote, this.clock);
  }

  reset(request: PolicyRequest): void | Promise<void> {
    const check = this.policies.check(request);
    const { limit, key } = check;
    if (limit.table !== undefined) {
      limit.table.reset(key);
      return this.lines.wake([check]);
    }
    limit.denials.forget(key);
    limit.owed?.take(key);
    limit.leases?.forget(key);
    return this.remote?.reset(limit, key).then(() => this.lines.wake([check]));
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
    // A limiter has a quota from the start or not at all: the local tier is built with it. One without is
    // not concerned: services that share a store need not all have one.
    const commitQuota = this.quotaRegistry?.prepare(change.quota, revision);
    return () => {
      const isLater = revision > this.revision || this.revision === 0;
      if (this.closed || !isLater) return;
      const changed = this.policies.install(checked, revision);
      this.latestChange = checked;
      // Tokens that go back were leased under the old limits, and must not meet a call under the new ones.
      this.remote?.flush();
      commitQuota?.();
      this.lines.wakeLimits(changed);
    };
  }

  get revision(): number {
    return this.policies.revision;
  }

  policy(name: string): PolicyInfo | undefined {
    return this.policies.info(name);
  }

  checkLimit(policy: string, limit: LimitInput, cost?: number): void {
    this.policies.checkLimit(policy, limit, cost);
  }

  policyNames(): string[] {
    return this.policies.names();
  }

  hotValues(policy: string, count = DEFAULT_HOT_VALUES): HotValue[] {
    wholeAbove0('count', count, MOST_NAMES);
    return this.policies.hotValues(policy, count);
  }

  override currentRate(query: RateQuery): number | undefined {
    return this.policies.currentRate(query);
  }

  override hotCounts(): Readonly<Record<string, number>> {
    return this.policies.hotCounts();
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
    const { remote } = this;
    return remote && { client: remote.client, prefix: remote.prefix, timeoutMs: remote.timeoutMs };
  }

  override get deniedKeys(): DeniedKeys {
    return this.policies.deniedKeys;
  }

  override get isAdaptive(): boolean {
    return this.policies.isAdaptive;
  }

  override load(factor: number): void {
    if (!(typeof factor === 'number' && factor > 0 && factor <= 1)) {
      throw new InvalidArgumentError('factor', factor, 'a number above 0, at most 1');
    }
    this.policies.load(factor);
  }

  override countAnonymous(policy: string): void {
    this.policies.countAnonymous(policy);
  }

  stats(): RateLimiterStats {
    const quota = this.quotaRegistry?.stats();
    const { memory, policies } = this;
    const store = this.remote?.stats();
    const counters = policies.counters();
    return {
      keys: memory.size,
      policies: counters,
      waiting: this.lines.waiting(),
      ...(store && { store }),
      ...(quota && { quota }),
    };
  }

  async ready(timeoutMs = READY_TIMEOUT_MS): Promise<void> {
    await this.remote?.ready(timeoutMs);
  }

  async close(): Promise<void> {
    if (this.closed) return;
    this.stopSweep();
    this.lines.close();
    this.closed = true;
    this.policies.close();
    this.leaseRegistry?.close();
    const left = this.quotaRegistry?.leave();
    this.memory.close();
    await (this.remote === undefined ? left : this.remote.close(left));
  }

  private split(request: Acquire): SplitRequest {
    return splitRequest(request, this.policies, this.checkQuota);
  }

  private quotas(): QuotaRegistry {
    if (this.closed) throw new LimiterClosedError();
    if (this.quotaRegistry === undefined) {
      throw new InvalidArgumentError('app', undefined, 'a limiter with a quota in its options');
    }
    return this.quotaRegistry;
  }

  /** The fleet has a configuration that this process does not know yet. Emitted once for each. */
  private seeRevision(revision: number): void {
    if (revision <= Math.max(this.seenRevision, this.revision)) return;
    this.seenRevision = revision;
    this.events.emit('revision', { revision });
  }
}

function isAllowed(decision: Decision | Promise<Decision>): boolean | Promise<boolean> {
  return decision instanceof Promise ? decision.then((made) => made.allowed) : decision.allowed;
}
