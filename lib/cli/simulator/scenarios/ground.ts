import {
  compileQuota,
  type AppFigures,
  type QuotaFigures,
} from '../../../algorithms/quota/quota-limits.js';
import {
  checkQuota,
  type QuotaSettings,
  type QuotaOptions,
} from '../../../limiter/quota-options.js';
import { quotaHorizonMicros } from '../../../local/lease-figures.js';
import { type Fault } from '../engine/faults.js';
import { type RunPlan } from '../engine/run.js';
import { shared, type Placement, type Rates } from '../load.js';
import { capacityOf, depthOf } from '../measure/figures.js';
import { type Setting } from './scenario.js';

/** More requests per second than this take too long to go through one by one. */
const MOST_REQUESTS_PER_SECOND = 10_000;

export interface OwnFigures {
  readonly quota: QuotaSettings;
  readonly nodes: number;
}

/** One app on a cluster of 10,000 tokens per second, which never meets its own ceiling. */
export function oneApp(capacity = 10_000, guaranteedPart = 0.5): QuotaSettings {
  const app: QuotaOptions['apps'][string] = {
    guaranteed: capacity * guaranteedPart,
    burst: capacity * 2,
    burstDuration: '1s',
    priority: 0,
  };
  return checkQuota({ cluster: { capacity }, apps: { api: app } });
}

/** The figures that a scenario stands on: the user's, or its own. */
export class Ground {
  readonly quota: QuotaSettings;
  readonly nodes: number;
  /** The scenario's own quota, and not one of the user's. */
  readonly isOwn: boolean;
  /** Tokens per request: one, or so many that a large cluster's traffic can be gone through. */
  readonly cost: number;

  constructor(
    private readonly setting: Setting,
    own: OwnFigures,
  ) {
    const quota = setting.quota ?? own.quota;
    this.isOwn = setting.quota === undefined;
    this.nodes = setting.nodes ?? own.nodes;
    this.cost = Math.ceil(reachOf(quota.figures) / MOST_REQUESTS_PER_SECOND);
    const maxCost = Math.max(quota.figures.maxCost, this.cost);
    this.quota = { ...quota, figures: { ...quota.figures, maxCost } };
  }

  get figures(): QuotaFigures {
    return this.quota.figures;
  }

  get capacity(): number {
    return capacityOf(this.figures);
  }

  get depth(): number {
    return depthOf(this.figures);
  }

  get paceSeconds(): number {
    return this.figures.paceMs / 1000;
  }

  get horizonSeconds(): number {
    return quotaHorizonMicros(compileQuota(this.figures)) / 1_000_000;
  }

  /** Requests per second that ask for this part of what can be had, each app for its part of that. */
  rates(part: number | ((second: number) => number)): Rates {
    const of = typeof part === 'number' ? () => part : part;
    const perSecond = reachOf(this.figures) / this.cost;
    return shared((second) => of(second) * perSecond, this.figures.apps.map(reachOfApp));
  }

  /** Requests per second of each app, when all of them ask for all that can be had. */
  requestRates(): readonly number[] {
    return this.rates(1)(0);
  }

  plan(seconds: number, rates: Rates, slot: Placement, faults: readonly Fault[] = []): RunPlan {
    const { quota, nodes, cost } = this;
    const { seed } = this.setting;
    return { quota, nodes, seconds, load: { rates, slot }, faults, cost, seed };
  }
}

/** C × horizon / N in requests; of the app with the least part in it, as each has a lease of its own. */
export function tokensPerNode({ figures, horizonSeconds, cost, nodes }: Ground): number {
  const reaches = figures.apps.map(reachOfApp);
  const least = Math.min(...reaches) / reaches.reduce((a, b) => a + b, 0);
  return (reachOf(figures) * least * horizonSeconds) / (cost * nodes);
}

/** Tokens per second that all apps together can have for long. */
export function reachOf({ cluster, apps }: QuotaFigures): number {
  const sum = apps.reduce((total, app) => total + reachOfApp(app), 0);
  return Math.min(cluster!.capacity, sum);
}

function reachOfApp({ elastic, guaranteed, burst }: AppFigures): number {
  return elastic ? burst : guaranteed;
}

/** The same figures for a cluster of another size. */
export function scaled(figures: QuotaFigures, factor: number): QuotaFigures {
  const by = (value: number): number => Math.max(1, Math.round(value * factor));
  const cluster = { ...figures.cluster!, capacity: by(figures.cluster!.capacity) };
  const apps = figures.apps.map((app) => {
    return { ...app, guaranteed: by(app.guaranteed), burst: by(app.burst) };
  });
  return { ...figures, cluster, apps };
}
