import { type QuotaStatus } from '../algorithms/quota/quota-status.js';

/** The quota that all apps share. Abstract, so that it is its own injection token. */
export abstract class ClusterQuota {
  /** How things stand: capacity, what is leased, and each app's grants, demand and consumption. */
  abstract status(): Promise<QuotaStatus>;
}
