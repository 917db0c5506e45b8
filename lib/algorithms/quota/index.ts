export { QuotaLedger } from './quota-ledger.js';
export {
  clusterDepth,
  compileQuota,
  stockDepth,
  UNITS_PER_TOKEN,
  type AppFigures,
  type ClusterFigures,
  type QuotaFigures,
  type QuotaLimits,
} from './quota-limits.js';
export * from './quota-protocol.js';
export { leaseName, type QuotaState } from './quota-state.js';
export { weightedShares, type ShareClaim } from './weighted-share.js';
