// The page for operators. It needs no other package than the main entry does.
export { RateLimitDashboardModule } from './dashboard/dashboard.module.js';
export {
  DashboardGuardMissingError,
  DashboardOptions,
  type DashboardAction,
  type DashboardGuard,
  type DashboardInput,
} from './dashboard/dashboard.options.js';
export { DashboardPathTakenError } from './dashboard/dashboard-routes.js';
export { AssetsMissingError } from './dashboard/assets.js';
export { loopbackOnly } from './dashboard/loopback-only.js';
export { sharedToken } from './dashboard/shared-token.js';
