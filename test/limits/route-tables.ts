import { type Type } from '@nestjs/common';
import { createRateLimiter, type RateLimiter } from 'nestjs-weir';
import { RoutePolicies } from '../../lib/limits/route-policies.js';
import { type RoutePlan } from '../../lib/limits/route-plan.js';
import { RouteTable, type RouteTableSettings } from '../../lib/limits/route-table.js';

export const POLICIES = { a: { rate: 10 }, b: { rate: 10 }, c: { rate: 10 }, 'v1.d': { rate: 10 } };

const limiters: RateLimiter[] = [];

/** The plans of handlers, with a few policies. */
export function tableOf(settings: Partial<RouteTableSettings> = {}): RouteTable {
  const limiter = createRateLimiter();
  limiters.push(limiter);
  const catalog = new RoutePolicies(limiter, { user: undefined, ipv6Prefix: 64 });
  catalog.define(POLICIES);
  return new RouteTable(catalog, limiter, {
    ...{ apply: undefined, hasQuota: false, maxCost: 10, handlers: () => [], pathsOf: () => [] },
    ...settings,
  });
}

export function planOf(
  type: Type,
  method: string,
  settings?: Partial<RouteTableSettings>,
): RoutePlan {
  return tableOf(settings).planOf(type, handlerOf(type, method));
}

export function handlerOf(type: Type, method: string): () => unknown {
  return (type.prototype as Record<string, () => unknown>)[method]!;
}

export function namesOf(plan: RoutePlan): string[] {
  return [...plan.policies.map(({ name }) => name), ...(plan.usesQuota ? ['quota'] : [])];
}

export async function closeLimiters(): Promise<void> {
  for (const limiter of limiters.splice(0)) await limiter.close();
}
