import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { type DegradationStats } from '../degradation/core/degradation-core.js';
import { LEVELS, type RecoveryStats } from '../degradation/core/contract.js';
import { type DeniedKey } from '../limiter/denied-keys.js';
import { type QuotaAdjust } from '../limiter/events.js';
import { type FailureMode } from '../limiter/policy-options.js';
import {
  type QuotaStats,
  type RateLimiter,
  type RateLimiterStats,
} from '../limiter/rate-limiter.js';
import { type HotValue } from '../local/hot-values.js';
import { type OverloadStats } from '../overload/events.js';
import { type Protection } from '../protection/protection.js';
import { type ResourceStats } from '../protection/resource-stats.js';
import { type RequestCounts } from '../requests/request-counts.js';
import { type TransportName } from '../requests/transport.js';
import { type Transports } from '../requests/transport.js';
import { STORE_OPS, type CallTimes, type OpCalls } from '../stores/call-times.js';
import { LogLinear } from '../common/histogram.js';
import { wireOf } from '../stores/redis/wire.js';
import { type ResponseTimes } from './response-times.js';
import { type Reading } from './series-table.js';
import { describeRedis } from './start-line.js';

/** The facts of the configuration. Its room is above this one, so the module's composition fills them in. */
export interface ConfigFacts {
  readonly revision: number;
  /** Documents that were not taken, by kind. */
  readonly refused: Readonly<Record<string, number>>;
}

/** The parts of the application that are watched. A part that is not there is not in the figures. */
export interface SourcesDeps {
  readonly limiter: RateLimiter;
  readonly transports: Pick<Transports, 'counts'>;
  readonly protection: Pick<Protection, 'stats' | 'timesOf'>;
  /** Undefined as long as nothing degrades: to ask would open it, and Redis with it. */
  readonly degradation: () => DegradationStats | undefined;
  /** Undefined where no requests go through the line. */
  readonly overload?: () => OverloadStats | undefined;
  /** Waits of requests in line. */
  readonly waitTimes?: () => LogLinear | undefined;
  readonly responses?: ResponseTimes;
  readonly config?: () => ConfigFacts;
  /** Events over their limit that were dropped. */
  readonly droppedEvents?: () => number;
}

/** Denials of an app in about the last ten seconds. */
export interface AppDenials {
  readonly app: string;
  readonly denied: number;
  /** Of those: not for the app's own quota, but because all apps together ask for too much. */
  readonly byCluster: number;
}

/** The counts of all parts since the start, as of one instant. */
export interface Facts {
  readonly requests: ReadonlyMap<TransportName, RequestCounts>;
  readonly limiter: RateLimiterStats;
  readonly calls: CallTimes | undefined;
  readonly storeIsUp: boolean;
  readonly epoch: number;
  readonly quotaHits: QuotaHits | undefined;
  /** Number of values in demand, by policy. */
  readonly hotCounts: () => Readonly<Record<string, number>>;
  readonly protection: Readonly<Record<string, ResourceStats>>;
  readonly timesOf: (resource: string) => LogLinear | undefined;
  readonly degradation: DegradationStats | undefined;
  readonly overload: OverloadStats | undefined;
  readonly waitTimes: LogLinear | undefined;
  readonly responses: ResponseTimes | undefined;
  readonly config: ConfigFacts | undefined;
  readonly droppedEvents: number | undefined;
  /** All apps together ask for more than nine tenths of the capacity; undefined where there is no cluster. */
  readonly overloaded: boolean | undefined;
  /** Of apps that are denied lately. */
  readonly denials: readonly AppDenials[];
  /** Apps that may have more or less since the last tick. */
  readonly adjusts: readonly QuotaAdjust[];
  /** Only of the process that leads: what the ledger says, and how many nodes are not on the latest revision. */
  readonly ledger?: QuotaStatus | undefined;
  readonly nodesBehind?: number | undefined;
}

const MOST_ADJUSTS = 32;
const READY_MS = 5000;

/** Reads the parts. What only events tell is kept here. */
export class Sources {
  private storeIsUp = true;
  private epoch = 0;
  private overloaded = false;
  private adjusts: QuotaAdjust[] = [];
  private adjustsBefore: readonly QuotaAdjust[] = [];
  private readonly quotaHits = new QuotaHits();
  private readonly appDenials = new DenialsLately();
  private readonly storeTimes = new LogLinear();
  private readonly stopListening: readonly (() => void)[];

  constructor(private readonly deps: SourcesDeps) {
    const { limiter } = deps;
    this.stopListening = [
      limiter.on('store', ({ state }) => (this.storeIsUp = state === 'up')),
      limiter.on('epoch', ({ epoch }) => (this.epoch = epoch)),
      limiter.on('overload', ({ overloaded }) => (this.overloaded = overloaded)),
      limiter.on('quota_adjust', (adjust) => {
        if (this.adjusts.length < MOST_ADJUSTS) this.adjusts.push(adjust);
      }),
    ];
  }

  stop(): void {
    for (const stop of this.stopListening) stop();
  }

  facts(): Facts {
    const { limiter, transports, protection, degradation, responses } = this.deps;
    const { redis } = limiter;
    const stats = limiter.stats();
    return {
      requests: transports.counts(),
      limiter: stats,
      calls: redis && wireOf(redis.client).calls,
      storeIsUp: this.storeIsUp,
      epoch: this.epoch,
      quotaHits: stats.quota && this.quotaHits,
      hotCounts: () => limiter.hotCounts(),
      protection: protection.stats(),
      timesOf: (resource) => protection.timesOf(resource),
      degradation: degradation(),
      overload: this.deps.overload?.(),
      waitTimes: this.deps.waitTimes?.(),
      responses,
      config: this.deps.config?.(),
      droppedEvents: this.deps.droppedEvents?.(),
      overloaded: stats.quota && this.overloaded,
      denials: this.appDenials.lately(),
      adjusts: this.adjustsBefore,
    };
  }

  /** A second has passed; what there is by now. */
  tick(): Facts {
    this.adjustsBefore = this.adjusts;
    this.adjusts = [];
    this.deps.responses?.tick();
    this.deps.limiter.deniedKeys?.tick();
    const facts = this.facts();
    const { quota } = facts.limiter;
    if (quota === undefined) return facts;
    this.quotaHits.add(quota);
    this.appDenials.add(quota);
    return { ...facts, denials: this.appDenials.lately() };
  }

  /** The figures of the whole cluster's ledger: a call to the store. Undefined where there are no quotas. */
  async quotaStatus(): Promise<QuotaStatus | undefined> {
    const { limiter } = this.deps;
    return limiter.stats().quota === undefined ? undefined : await limiter.quota.status();
  }

  /** Which store it is and where; undefined in memory. Waits until it answers, for a while. */
  async describeStore(): Promise<string | undefined> {
    const { limiter } = this.deps;
    if (limiter.redis === undefined) return undefined;
    const isReady = await limiter.ready(READY_MS).then(
      () => true,
      () => false,
    );
    const place = await describeRedis(limiter.redis);
    return isReady ? place : `${place}, not reachable yet`;
  }

  deniedKeys(count: number): DeniedKey[] {
    return this.deps.limiter.deniedKeys?.top(count) ?? [];
  }

  failureModeOf(policy: string): FailureMode | undefined {
    return this.deps.limiter.policy(policy)?.failureMode;
  }

  /** The values that are most in demand, of all policies that look. */
  hotValues(count: number): (HotValue & { readonly policy: string })[] {
    const { limiter } = this.deps;
    const all = Object.keys(limiter.hotCounts()).flatMap((policy) =>
      limiter.hotValues(policy, count).map((one) => ({ policy, ...one })),
    );
    return all
      .filter(({ perPeriod }) => perPeriod > 0)
      .sort((one, other) => other.perPeriod - one.perPeriod)
      .slice(0, count);
  }

  /** The series that these facts are about. */
  read(facts: Facts, into: Reading): void {
    readPolicies(facts, into);
    readApps(facts, into);
    readResources(facts, into);
    this.readStore(facts, into);
    readTotal(facts, into);
  }

  private readStore({ calls }: Facts, { store }: Reading): void {
    if (calls === undefined) return;
    this.storeTimes.clear();
    for (const op of STORE_OPS) {
      store.count += calls[op].times.count;
      store.errors += failuresOf(calls[op]);
      this.storeTimes.merge(calls[op].times);
    }
    store.count += store.errors;
    store.times = this.storeTimes;
  }
}

const failuresOf = ({ failures }: OpCalls): number =>
  failures.timeout + failures.connection + failures.reply;

function readPolicies({ limiter }: Facts, into: Reading): void {
  for (const [name, { allowed, denied, shadowDenied }] of Object.entries(limiter.policies)) {
    const row = into.of('policy', name);
    row.count = allowed + denied + shadowDenied;
    row.denied = denied;
  }
}

function readApps({ limiter }: Facts, into: Reading): void {
  for (const [name, { allowed, denied, used }] of Object.entries(limiter.quota?.apps ?? {})) {
    const row = into.of('app', name);
    row.count = allowed + denied;
    row.denied = denied;
    row.used = used;
    into.total.used += used;
  }
}

/** A resource may be protected, degraded or both; then the larger count is that of all its requests. */
function readResources({ protection, timesOf, degradation }: Facts, into: Reading): void {
  for (const [name, stats] of Object.entries(protection)) {
    const row = into.of('resource', name);
    row.count = stats.calls;
    row.denied = stats.limited + stats.full + stats.waited + stats.open;
    row.errors = stats.failed + stats.timedOut;
    row.slow = stats.slow;
    row.times = timesOf(name);
  }
  for (const recovery of degradation?.resources ?? []) {
    const row = into.of('resource', recovery.resource);
    row.count = Math.max(row.count, requestsOf(recovery));
  }
  for (const [name, levels] of Object.entries(degradation?.fallbacks.resources ?? {})) {
    const row = into.of('resource', name);
    for (const level of LEVELS) row[`degraded${level}`] = levels[level];
  }
}

function requestsOf({ normal, held, stages }: RecoveryStats): number {
  return stages.reduce((sum, stage) => sum + stage.admitted + stage.held, normal + held);
}

/**
 * All requests: those at the guards. Without any guard the busiest policy stands for them, as the sum of all
 * policies would count a request several times; or the apps together, of which a request charges one.
 */
function readTotal({ requests, responses, degradation }: Facts, { total, named }: Reading): void {
  let handedOver = 0;
  for (const counts of requests.values()) {
    total.count += counts.requests;
    total.denied += counts.denied;
    handedOver += counts.handedOver;
  }
  // A request over its limit that got another answer is degraded, and not denied as well.
  total.denied += Math.min(handedOver, degradation?.fallbacks.unanswered.limited ?? handedOver);
  if (total.count === 0) {
    for (const row of named.app.values()) {
      total.count += row.count;
      total.denied += row.denied;
    }
    for (const row of named.policy.values()) {
      if (row.count <= total.count) continue;
      total.count = row.count;
      total.denied = row.denied;
    }
  }
  total.errors = responses?.errors ?? 0;
  total.times = responses?.times;
  if (degradation === undefined) return;
  for (const level of LEVELS) {
    const byReason = Object.values(degradation.fallbacks.answers[level]);
    total[`degraded${level}`] = byReason.reduce((sum, count) => sum + count, 0);
  }
}

const SECONDS = 60;

/** Which part of the decisions on quotas was made here, in the last minute. */
export class QuotaHits {
  private readonly decisions = new Float64Array(SECONDS + 1);
  private readonly hits = new Float64Array(SECONDS + 1);
  private ticks = 0;

  add({ decisions, localHits }: QuotaStats): void {
    const place = ++this.ticks % (SECONDS + 1);
    this.decisions[place] = decisions;
    this.hits[place] = localHits;
  }

  /** NaN if there was no decision. */
  get ratio(): number {
    const last = this.ticks % (SECONDS + 1);
    const first = Math.max(0, this.ticks - SECONDS) % (SECONDS + 1);
    const decisions = this.decisions[last]! - this.decisions[first]!;
    return (this.hits[last]! - this.hits[first]!) / decisions;
  }
}

/** Of what was counted a second ago so much is left. */
const FADES = 0.9;

/** The denials of each app lately, by the tier that denied; ticks are seconds. */
class DenialsLately {
  private readonly byApp = new Map<
    string,
    { seen: AppDenials; denied: number; byCluster: number }
  >();

  add({ apps }: QuotaStats): void {
    for (const [app, { denied, bySource }] of Object.entries(apps)) {
      const byCluster = bySource.local.deniedByCluster + bySource.store.deniedByCluster;
      const seen = { app, denied, byCluster };
      const known = this.byApp.get(app);
      if (known === undefined) {
        this.byApp.set(app, { seen, denied, byCluster });
        continue;
      }
      known.denied = known.denied * FADES + Math.max(0, denied - known.seen.denied);
      known.byCluster = known.byCluster * FADES + Math.max(0, byCluster - known.seen.byCluster);
      known.seen = seen;
    }
  }

  lately(): AppDenials[] {
    return Array.from(this.byApp, ([app, { denied, byCluster }]) => {
      return { app, denied: Math.round(denied), byCluster: Math.round(byCluster) };
    }).filter(({ denied }) => denied > 0);
  }
}
