import {
  compileQuota,
  UNITS_PER_TOKEN,
  type QuotaLimits,
  type QuotaStatus,
} from '../algorithms/quota/index.js';
import { type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { CostExceedsLimitError, InvalidArgumentError, UnknownAppError } from '../common/errors.js';
import { AppTank } from '../local/app-tank.js';
import { horizonMs } from '../local/horizon.js';
import { QuotaNode, type QuotaNodeEvents, type QuotaOutcome } from '../local/quota-node.js';
import { type QuotaOverview, type QuotaStore } from '../stores/index.js';
import { ClusterQuota } from './cluster-quota.js';
import { type Decision } from './decision.js';
import { type CheckedQuota } from './quota-options.js';
import { type QuotaRequest, type QuotaStats } from './rate-limiter.js';

/** The ceiling of an app is a second deep, so after one second without use it is whole again. */
const RESET_MS = 1000;

/** The quotas of this node's apps by name; turns requests into decisions of the local tier. */
export class QuotaBook extends ClusterQuota {
  readonly node: QuotaNode;
  private readonly limits: QuotaLimits;
  private readonly tanks = new Map<string, AppTank>();
  private latest: AppTank | undefined;

  constructor(
    quota: CheckedQuota,
    nodeId: string,
    incarnation: string,
    decisionTimeoutMs: number,
    private readonly store: QuotaStore & QuotaOverview,
    private readonly clock: Clock,
    events: QuotaNodeEvents,
  ) {
    super();
    const { figures, local } = quota;
    this.limits = compileQuota(figures);
    const tanks = figures.apps.map(({ app, guaranteed, burst }, index) => {
      const tank = new AppTank(index, app, guaranteed, burst, figures.maxCost);
      tank.mostCost = this.mostOf(index);
      this.tanks.set(app, tank);
      return tank;
    });
    const settings = {
      nodeId,
      incarnation,
      horizonMicros: horizonMs(this.limits) * 1000,
      paceMicros: this.limits.paceMicros,
      leaseTtlMicros: this.limits.leaseTtlMicros,
      syncMicros: durationMs(local.syncInterval, 'quota.local.syncInterval') * 1000,
      batchThreshold: local.batchThreshold,
      reserveTarget: figures.reserveTarget,
      refillThreshold: local.refillThreshold,
      decisionTimeoutMs,
    };
    this.node = new QuotaNode(settings, tanks, store, clock, events);
  }

  decide(request: QuotaRequest): Decision | Promise<Decision> {
    const tank = this.tankOf(request.app);
    const cost = request.cost === undefined ? 1 : this.checkedCost(tank, request.cost);
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

  /** Tokens that were taken for a request that was then refused for another reason. */
  giveBack(request: QuotaRequest): void {
    this.node.giveBack(this.tankOf(request.app), request.cost ?? 1);
  }

  private tankOf(app: string): AppTank {
    if (this.latest?.app === app) return this.latest;
    const tank = this.tanks.get(app);
    if (tank === undefined) throw new UnknownAppError(app, [...this.tanks.keys()]);
    this.latest = tank;
    return tank;
  }

  private checkedCost(tank: AppTank, cost: number): number {
    if (!Number.isInteger(cost) || cost < 1) {
      throw new InvalidArgumentError('cost', cost, 'a whole number above 0');
    }
    if (cost > tank.mostCost) throw new CostExceedsLimitError(tank.app, cost, tank.mostCost);
    return cost;
  }

  /** What the app can hold at one time: its guarantee, and what may be lent beyond it. */
  private mostOf(index: number): number {
    const { apps, capacity, depth } = this.limits;
    const app = apps[index]!;
    const others = apps.reduce((sum, one) => sum + (one === app ? 0 : one.stockDepth), 0);
    const lendable =
      capacity === 0 ? Infinity : Math.max(0, depth - others - app.reserve - app.stockDepth);
    const beyond = Math.min(lendable, app.creditDepth);
    const units = Math.min(app.ceilingDepth, app.stockDepth + beyond);
    return Math.floor(units / UNITS_PER_TOKEN);
  }

  private describe(
    tank: AppTank,
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
      remaining: tank.tokens,
      limit: tank.burst,
      delayMs: 0,
      retryAfterMs: outcome.allowed ? 0 : Math.ceil(outcome.retryAfterMicros / 1000),
      resetMs: RESET_MS,
      timestampMs: this.clock.epochMs(now),
      policy: tank.app,
      tier: outcome.tier,
      source: outcome.source,
    };
  }
}
