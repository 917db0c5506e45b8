import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { type Clock } from '../common/clock.js';
import {
  CostExceedsLimitError,
  InvalidArgumentError,
  RestartNeededError,
  UnknownAppError,
} from '../common/errors.js';
import { wholeCost } from '../common/validate.js';
import { type AppTokens } from '../local/app-tokens.js';
import { type QuotaNodeEvents } from '../local/node-surroundings.js';
import { QuotaNode } from '../local/quota-node.js';
import { type QuotaOutcome } from '../local/quota-outcome.js';
import {
  type QuotaLimitsStore,
  type QuotaMembers,
  type QuotaOverview,
  type QuotaStore,
} from '../stores/quota-store.js';
import { ClusterQuota } from './cluster-quota.js';
import { type Decision, type DecisionSource } from './decision.js';
import { checkQuota, type CheckedQuota, type QuotaOptions } from './quota-options.js';
import { NOTHING, newTank, planOf, type QuotaPlan } from './quota-plan.js';
import { type QuotaRequest, type QuotaStats } from './rate-limiter.js';

/** The ceiling of an app is a second deep, so after one second without use it is whole again. */
const RESET_MS = 1000;

/** The quotas of this node's apps by name; turns requests into decisions of the local tier. */
export class QuotaRegistry extends ClusterQuota {
  readonly node: QuotaNode;
  private readonly clusterId: string;
  /** How many nodes there are to an app that the store has not told of yet. */
  private readonly assumedNodes: number;
  /** All apps that there ever were; those that are gone may come back. */
  private readonly known = new Map<string, AppTokens>();
  private tanks: ReadonlyMap<string, AppTokens>;
  private latest: AppTokens | undefined;
  private revision = 0;
  /** What is in effect, and what it was made of. */
  private checked: CheckedQuota;
  private plan: QuotaPlan;
  /** The largest `maxCost` that there ever was: what was taken under it may still come back. */
  private largestCost: number;

  constructor(
    quota: CheckedQuota,
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
    this.checked = quota;
    this.largestCost = quota.figures.maxCost;
    this.plan = planOf(quota);
    const { apps, tuning } = this.plan;
    const tanks = Array.from(apps, ([app, figures], index) => {
      return newTank(index, app, figures, this.assumedNodes);
    });
    for (const tank of tanks) this.known.set(tank.name, tank);
    this.tanks = new Map(this.known);
    const settings = { nodeId, incarnation, decisionTimeoutMs, ...tuning };
    this.node = new QuotaNode(settings, tanks, store, clock, events);
    store.join(`${incarnation}:${nodeId}`, quota.local.apps, (nodesOf, isAll) => {
      const now = clock.now();
      for (const tank of this.known.values()) tank.shareWith(nodesOf(tank.name), isAll, now);
    });
  }

  /** Reports what is left to report, gives everything back, and is counted no longer. */
  async leave(): Promise<void> {
    await this.node.leave();
    await this.store.leave();
  }

  /**
   * Another quota for the same cluster. Whatever is wrong with it is found here; what is returned
   * puts it into effect at once and cannot fail, however the store is.
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
    const plan = checked === this.checked ? this.plan : planOf(checked);
    return () => {
      this.revision = revision;
      this.store.apply(checked.figures, revision);
      if (plan === this.plan) return this.node.follow(revision);
      this.checked = checked;
      this.largestCost = Math.max(this.largestCost, checked.figures.maxCost);
      this.plan = plan;
      this.node.change(plan.tuning, this.commit(plan), revision);
    };
  }

  /** Returns the apps that were not there before. */
  private commit({ apps }: QuotaPlan): AppTokens[] {
    const now = this.clock.now();
    const added: AppTokens[] = [];
    for (const [app, tank] of this.known) if (!apps.has(app)) tank.retire(now);
    for (const [app, figuresOfApp] of apps) {
      let tank = this.known.get(app);
      if (tank === undefined) {
        tank = newTank(this.known.size, app, NOTHING, this.assumedNodes);
        this.known.set(app, tank);
        added.push(tank);
      }
      tank.change(figuresOfApp, now);
    }
    this.tanks = new Map(Array.from(this.known).filter(([app]) => apps.has(app)));
    this.latest = undefined;
    return added;
  }

  decide(request: QuotaRequest): Decision | Promise<Decision> {
    const tank = this.tankOf(request.app);
    const cost = request.cost === undefined ? 1 : costWithin(tank, request.cost, tank.maxCost);
    const outcome = this.node.tryAcquire(tank, cost);
    return outcome instanceof Promise
      ? outcome.then((made) => this.describe(tank, made, this.clock.now(), cost, request.method))
      : this.describe(tank, outcome, this.node.decidedAt, cost, request.method);
  }

  status(): Promise<QuotaStatus> {
    return this.store.status();
  }

  stats(): QuotaStats {
    const { node } = this;
    const apps = Array.from(this.tanks, ([app, tank]) => {
      const { tokens, allowed, denied } = tank;
      return [app, { mode: node.modeOf(tank), tokens, allowed, denied }] as const;
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
    const tank = this.tankOf(app);
    costWithin(tank, cost, tank.maxCost);
  }

  /** Throws if no request can have taken that. */
  checkRefund({ app, cost = 1 }: QuotaRequest): void {
    costWithin(this.knownTank(app), cost, this.largestCost);
  }

  /** Tokens that were taken and are not used, of a request that has been checked. */
  giveBack(request: QuotaRequest, source: DecisionSource | undefined): void {
    this.node.giveBack(this.knownTank(request.app), request.cost ?? 1, source);
  }

  /** Of tokens that were taken: the app may be gone since. */
  private knownTank(app: string): AppTokens {
    return this.known.get(app) ?? this.tankOf(app);
  }

  private tankOf(app: string): AppTokens {
    if (this.latest?.name === app) return this.latest;
    const tank = this.tanks.get(app);
    if (tank === undefined) throw new UnknownAppError(app, [...this.tanks.keys()]);
    this.latest = tank;
    this.store.serve(app);
    return tank;
  }

  private describe(
    tank: AppTokens,
    outcome: QuotaOutcome,
    now: number,
    cost: number,
    method: string | undefined,
  ): Decision {
    if (outcome.allowed) {
      tank.allowed++;
      tank.usage.add(cost, method);
    } else {
      tank.denied++;
    }
    return {
      allowed: outcome.allowed,
      remaining: remainingOf(tank, outcome),
      limit: tank.burst,
      delayMs: 0,
      retryAfterMs: outcome.allowed ? 0 : Math.ceil(outcome.retryAfterMicros / 1000),
      resetMs: RESET_MS,
      timestampMs: this.clock.epochMs(now),
      policy: tank.name,
      tier: outcome.tier,
      source: outcome.source,
    };
  }
}

/** What is here and what the store had left for the app when last heard; without the store only what is here. */
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
