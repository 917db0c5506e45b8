import { InvalidArgumentError } from '../common/errors.js';
import { type PolicyRegistry } from './policy-registry.js';
import { type Acquire, type AcquireRequest, type QuotaRequest } from './rate-limiter.js';
import { type BoundCheck } from './remembered-denial.js';

/** What is asked of a limiter at one time: of policies and of quotas, each in its order. */
export interface SplitRequest {
  readonly checks: readonly BoundCheck[];
  readonly quotas: readonly QuotaRequest[];
}

/** Throws if any part of it cannot be, so that nothing of it is taken or given back. */
export function splitRequest(
  request: Acquire,
  policies: PolicyRegistry,
  checkQuota: (quota: QuotaRequest) => void,
): SplitRequest {
  const requests = isList(request) ? request : [request];
  if (requests.length === 0) {
    throw new InvalidArgumentError('request', request, 'at least one policy and key, or app');
  }
  const quotas = requests.filter((one) => one?.app !== undefined);
  const rules = requests.filter((one) => one?.app === undefined);
  for (const quota of quotas) checkQuota(quota);
  return { checks: rules.length === 0 ? [] : policies.checks(rules), quotas };
}

export function isList(request: Acquire): request is readonly AcquireRequest[] {
  return Array.isArray(request);
}
