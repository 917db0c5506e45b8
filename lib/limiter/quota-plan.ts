import { compileQuota, UNITS_PER_TOKEN, type QuotaLimits } from '../algorithms/quota/index.js';
import { durationMs } from '../common/duration.js';
import { AppTank, type TankFigures } from '../local/app-tank.js';
import { gatherMicrosOf } from '../local/offline-share.js';
import { horizonMs } from '../local/horizon.js';
import { type NodeTuning } from '../local/node-surroundings.js';
import { type CheckedQuota } from './quota-options.js';

/** A quota as the local tier goes by it. */
export interface QuotaPlan {
  readonly apps: ReadonlyMap<string, TankFigures>;
  readonly tuning: NodeTuning;
}

/** Of an app that the store has not heard of yet. */
export const NOTHING: TankFigures = {
  guaranteed: 0,
  burst: 0,
  maxCost: 0,
  mostCost: 0,
  gatherMicros: 0,
};

export function planOf({ figures, local }: CheckedQuota): QuotaPlan {
  const limits = compileQuota(figures);
  const { maxCost } = figures;
  const gatherMicros = gatherMicrosOf(limits);
  const apps = figures.apps.map(({ app, guaranteed, burst }, index) => {
    const mostCost = mostOf(limits, index);
    return [app, { guaranteed, burst, maxCost, mostCost, gatherMicros }] as const;
  });
  return {
    apps: new Map(apps),
    tuning: {
      horizonMicros: horizonMs(limits) * 1000,
      paceMicros: limits.paceMicros,
      syncMicros: durationMs(local.syncInterval, 'quota.local.syncInterval') * 1000,
      batchThreshold: local.batchThreshold,
      reserveTarget: figures.reserveTarget,
      refillThreshold: local.refillThreshold,
    },
  };
}

export function newTank(index: number, app: string, figures: TankFigures, nodes: number): AppTank {
  const { guaranteed, burst, maxCost, mostCost, gatherMicros } = figures;
  const tank = new AppTank(index, app, guaranteed, burst, maxCost, gatherMicros, nodes);
  tank.mostCost = mostCost;
  return tank;
}

/** What the app can hold at one time: its guarantee, and what may be lent beyond it. */
function mostOf({ apps, capacity, depth }: QuotaLimits, index: number): number {
  const app = apps[index]!;
  const others = apps.reduce((sum, one) => sum + (one === app ? 0 : one.stockDepth), 0);
  const lendable =
    capacity === 0 ? Infinity : Math.max(0, depth - others - app.reserve - app.stockDepth);
  const beyond = Math.min(lendable, app.creditDepth);
  const units = Math.min(app.ceilingDepth, app.stockDepth + beyond);
  return Math.floor(units / UNITS_PER_TOKEN);
}
