import { compileQuota, storeFillMicrosOf } from '../algorithms/quota/quota-limits.js';
import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import {
  CostExceedsLimitError,
  InvalidArgumentError,
  RestartNeededError,
  UnknownAppError,
} from '../common/errors.js';
import { wholeCost } from '../common/validate.js';
import { AppTokens, type AppTokensSettings, type QuotaCounts } from '../local/app-tokens.js';
import { type QuotaNodeEvents } from '../local/lease-calls.js';
import { quotaHorizonMicros } from '../local/lease-figures.js';
import { shareFillMicrosOf } from '../local/offline-share.js';
import { QuotaNode, type NodeTuning, type QuotaOutcome } from '../local/quota-node.js';
import {
  type QuotaLimitsStore,
  type QuotaMembers,
  type QuotaOverview,
  type QuotaStore,
} from '../stores/quota-store.js';
import { type Decision, type DecisionSource } from './decision.js';
import { checkQuota, type QuotaSettings, type QuotaOptions } from './quota-options.js';
import {
  ClusterQuota,
  type AppQuotaStats,
  type QuotaRequest,
  type QuotaStats,
} from './rate-limiter.js';

/** The ceiling of an app is a second deep, so after one second without use it is whole again. */
const RESET_MS = 1000;

/** A quota as the local tier goes by it. */
interface QuotaPlan {
  readonly apps: ReadonlyMap<string, AppTokensSettings>;
  readonly tuning: NodeTuning;
}

/** An app that the store does not know yet. */
const NOTHING: AppTokensSettings = {
  guaranteed: 0,
  burst: 0,
  maxCost: 0,
  fillMicros: 0,
  storeFillMicros: 0,
};

/** The quotas of this node's apps by name; turns requests into decisions of the local tier. */
export class QuotaRegistry extends ClusterQuota {
  readonly node: QuotaNode;
  private readonly clusterId: string;
  /** The number of nodes of an app before the first reply about it. */
  private readonly assumedNodes: number;
  /** All apps that there ever were; apps that are gone may come back. */
  private readonly known = new Map<string, AppTokens>();
  private apps: ReadonlyMap<string, AppTokens>;
  private latest: AppTokens | undefined;
  private revision = 0;
  /** The quota in effect, and its figures for the local tier. */
  private settings: QuotaSettings;
  private plan: QuotaPlan;
  /** The largest `maxCost` that there ever was: tokens taken under it may still come back. */
  private largestCost: number;

  constructor(
    quota: QuotaSettings,
    nodeId: string,
    incarnation: string,
    decisionTimeoutMs: number,
    private readonly store: QuotaStore & QuotaLimitsStore & QuotaMembers & QuotaOverview,
    private readonly clock: Clock,
    events: QuotaNodeEvents,
  ) {
    super();
    this.clusterId = quota.clusterId;
    this.assumedNodes = quota.local.nodes;
    this.settings = quota;
    this.largestCost = quota.figures.maxCost;
    this.plan = planOf(quota);
    const { apps, tuning } = this.plan;
    const held = Array.from(apps, ([name, ofApp], index) => {
      return new AppTokens(index, name, ofApp, this.assumedNodes);
    });
    for (const app of held) this.known.set(app.name, app);
    this.apps = new Map(this.known);
    const settings = { nodeId, incarnation, decisionTimeoutMs, ...tuning };
    this.node = new QuotaNode(settings, held, store, clock, events);
    store.join(`${incarnation}:${nodeId}`, quota.local.apps, (nodesOf, isAll) => {
      const now = clock.now();
      for (const app of this.known.values()) app.shareWith(nodesOf(app.name), isAll, now);
    });
  }

  /** Reports all that was used, gives all tokens back, and is counted no longer. */
  async leave(): Promise<void> {
    await this.node.leave();
    await this.store.leave();
  }

  /**
   * Another quota for the same cluster. Every mistake in it is found here; the returned function puts it
   * into effect at once and cannot fail, however the store is.
   */
  prepare(quota: QuotaOptions | undefined, revision: number): () => void {
    if (quota === undefined) throw new RestartNeededError('quota', quota, 'a quota');
    const checked = checkQuota(quota);
    if (checked.clusterId !== this.clusterId) {
      throw new RestartNeededError('quota.clusterId', checked.clusterId, `"${this.clusterId}"`);
    }
    if (!Number.isSafeInteger(revision) || revision < this.revision) {
      throw new InvalidArgumentError('revision', revision, `${this.revision} or a later one`);
    }
    const plan = checked === this.settings ? this.plan : planOf(checked);
    return () => {
      this.revision = revision;
      this.store.apply(checked.figures, revision);
      if (plan === this.plan) return this.node.follow(revision);
      this.settings = checked;
      this.largestCost = Math.max(this.largestCost, checked.figures.maxCost);
      this.plan = plan;
      this.node.change(plan.tuning, this.commit(plan), revision);
    };
  }

  /** Returns the apps that were not there before. */
  private commit({ apps }: QuotaPlan): AppTokens[] {
    const now = this.clock.now();
    const added: AppTokens[] = [];
    for (const [name, app] of this.known) if (!apps.has(name)) app.retire(now);
    for (const [name, settings] of apps) {
      let app = this.known.get(name);
      if (app === undefined) {
        app = new AppTokens(this.known.size, name, NOTHING, this.assumedNodes);
        this.known.set(name, app);
        added.push(app);
      }
      app.change(settings, now);
    }
    this.apps = new Map(Array.from(this.known).filter(([name]) => apps.has(name)));
    this.latest = undefined;
    return added;
  }

  decide(request: QuotaRequest): Decision | Promise<Decision> {
    const app = this.appOf(request.app);
    const cost = request.cost === undefined ? 1 : costWithin(app, request.cost, app.maxCost);
    const outcome = this.node.tryAcquire(app, cost);
    return outcome instanceof Promise
      ? outcome.then((made) => this.describe(app, made, this.clock.now(), cost, request.method))
      : this.describe(app, outcome, this.node.decidedAt, cost, request.method);
  }

  status(): Promise<QuotaStatus> {
    return this.store.status();
  }

  stats(): QuotaStats {
    const { node } = this;
    const apps = Array.from(this.apps, ([name, app]) => {
      const { tokens, counts, guaranteed, burst, nodes } = app;
      const { allowed, denied, used } = counts;
      const decided = { allowed, denied, used, bySource: bySource(counts) };
      const limits = { guaranteed, burst, nodes };
      return [name, { mode: node.modeOf(app), tokens, ...decided, ...limits }] as const;
    });
    return {
      decisions: node.decisions,
      localHits: node.decisions - node.waited,
      remoteCalls: node.remoteCalls,
      apps: Object.fromEntries(apps),
    };
  }

  /** Throws what `decide` would, and takes nothing. */
  check({ app, cost = 1 }: QuotaRequest): void {
    const held = this.appOf(app);
    costWithin(held, cost, held.maxCost);
  }

  /** Throws if no request can have taken that. */
  checkRefund({ app, cost = 1 }: QuotaRequest): void {
    costWithin(this.knownApp(app), cost, this.largestCost);
  }

  /** Tokens that were taken and are not used, of a request that has been checked. */
  giveBack(request: QuotaRequest, source: DecisionSource | undefined): void {
    this.node.giveBack(this.knownApp(request.app), request.cost ?? 1, source);
  }

  /** The app of tokens that were taken; it may be gone since. */
  private knownApp(name: string): AppTokens {
    return this.known.get(name) ?? this.appOf(name);
  }

  private appOf(name: string): AppTokens {
    if (this.latest?.name === name) return this.latest;
    const app = this.apps.get(name);
    if (app === undefined) throw new UnknownAppError(name, [...this.apps.keys()]);
    this.latest = app;
    this.store.serve(name);
    return app;
  }

  private describe(
    app: AppTokens,
    outcome: QuotaOutcome,
    now: number,
    cost: number,
    method: string | undefined,
  ): Decision {
    if (outcome.allowed) {
      app.counts.allow(outcome.source, cost);
      app.usage.add(cost, method);
    } else {
      app.counts.deny(outcome.source, outcome.tier === 'cluster');
    }
    return {
      allowed: outcome.allowed,
      remaining: remainingOf(app, outcome),
      limit: app.burst,
      delayMs: 0,
      retryAfterMs: outcome.allowed ? 0 : Math.ceil(outcome.retryAfterMicros / 1000),
      resetMs: RESET_MS,
      timestampMs: this.clock.epochMs(now),
      policy: app.name,
      tier: outcome.tier,
      source: outcome.source,
    };
  }
}

function bySource(counts: QuotaCounts): AppQuotaStats['bySource'] {
  const { allowedLocal, allowedStore, allowedFallback, deniedFallback } = counts;
  const { deniedLocal, deniedStore, clusterLocal, clusterStore } = counts;
  return {
    local: { allowed: allowedLocal, denied: deniedLocal, deniedByCluster: clusterLocal },
    store: { allowed: allowedStore, denied: deniedStore, deniedByCluster: clusterStore },
    fallback: { allowed: allowedFallback, denied: deniedFallback, deniedByCluster: 0 },
  };
}

/** Tokens here and those of the app in the store by its latest reply; without the store only those here. */
function remainingOf({ tokens, remaining, burst }: AppTokens, { source }: QuotaOutcome): number {
  return source === 'fallback' ? tokens : Math.min(burst, tokens + remaining);
}

function costWithin({ name }: AppTokens, cost: number, maxCost: number): number {
  if (typeof cost === 'number' && cost > maxCost) {
    throw CostExceedsLimitError.ofQuota(name, cost, maxCost);
  }
  wholeCost(cost);
  return cost;
}

function planOf({ figures, local }: QuotaSettings): QuotaPlan {
  const limits = compileQuota(figures);
  const { maxCost } = figures;
  const share = { maxCost, fillMicros: shareFillMicrosOf(limits) };
  const storeFillMicros = storeFillMicrosOf(limits);
  const apps = figures.apps.map(({ app, guaranteed, burst }) => {
    return [app, { guaranteed, burst, ...share, storeFillMicros }] as const;
  });
  return {
    apps: new Map(apps),
    tuning: {
      horizonMicros: quotaHorizonMicros(limits),
      paceMicros: limits.paceMicros,
      syncMicros: durationMs(local.syncInterval, 'quota.local.syncInterval') * 1000,
      batchThreshold: local.batchThreshold,
      reserveTarget: figures.reserveTarget,
      refillThreshold: local.refillThreshold,
    },
  };
}
