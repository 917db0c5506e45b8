import { compileQuota } from '../algorithms/quota/quota-limits.js';
import { durationMs } from '../common/duration.js';
import { AppTokens, type AppTokensSettings } from '../local/app-tokens.js';
import { gatherMicrosOf } from '../local/offline-share.js';
import { horizonMs } from '../local/lease-figures.js';
import { type NodeTuning } from '../local/node-surroundings.js';
import { type CheckedQuota } from './quota-options.js';

/** A quota as the local tier goes by it. */
export interface QuotaPlan {
  readonly apps: ReadonlyMap<string, AppTokensSettings>;
  readonly tuning: NodeTuning;
}

/** Of an app that the store has not heard of yet. */
export const NOTHING: AppTokensSettings = {
  guaranteed: 0,
  burst: 0,
  maxCost: 0,
  gatherMicros: 0,
};

export function planOf({ figures, local }: CheckedQuota): QuotaPlan {
  const limits = compileQuota(figures);
  const { maxCost } = figures;
  const gatherMicros = gatherMicrosOf(limits);
  const apps = figures.apps.map(({ app, guaranteed, burst }) => {
    return [app, { guaranteed, burst, maxCost, gatherMicros }] as const;
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

export function newTank(index: number, app: string, figures: AppTokensSettings, nodes: number): AppTokens {
  const { guaranteed, burst, maxCost, gatherMicros } = figures;
  return new AppTokens(index, app, guaranteed, burst, maxCost, gatherMicros, nodes);
}
