import { type QuotaOptions } from 'nestjs-weir';
import { type ContenderOptions } from './contender.js';

export const APP = 'api';

/** One app that is sure of the case's limit, on a cluster with room for ten of them. */
export function weirQuota({ limit, periodMs }: ContenderOptions): QuotaOptions {
  const perSecond = Math.ceil((limit * 1000) / periodMs);
  return {
    cluster: { capacity: 10 * perSecond },
    apps: { [APP]: { guaranteed: perSecond, burst: 2 * perSecond, priority: 0 } },
  };
}
