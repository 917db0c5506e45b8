import { InvalidArgumentError } from '../common/errors.js';
import { type PolicyBook } from './policy-book.js';
import { type Acquire, type AcquireRequest, type QuotaRequest } from './rate-limiter.js';
import { type BoundCheck } from './remembered-denial.js';

/** What is asked of a limiter at one time: of policies and of quotas, each in its order. */
export interface Asked {
  readonly checks: readonly BoundCheck[];
  readonly quotas: readonly QuotaRequest[];
}

/** Throws if any part of it cannot be, so that nothing of it is taken or given back. */
export function sortAsked(
  request: Acquire,
  policies: PolicyBook,
  checkQuota: (quota: QuotaRequest) => void,
): Asked {
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
