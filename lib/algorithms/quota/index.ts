export { type ConsumptionTotal } from './consumption.js';
export * from './quota-messages.js';
export { numbered } from './quota-numbering.js';
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
export {
  newAppState,
  newState,
  leaseName,
  type AppState,
  type ClusterState,
  type QuotaState,
} from './quota-state.js';
export { statusOf, type AppStatus, type LedgerView, type QuotaStatus } from './quota-status.js';
export { weightedShares, type ShareClaim } from './weighted-share.js';
