import { type ConfigLayer, type RoutePolicy } from 'nestjs-weir';

const POLICIES = 10;

/** The document of a service of some size: ten policies, one of them with tiers, and three apps. */
export const DOCUMENT = {
  cluster: { capacity: 10_000 },
  apps: {
    shop: { guaranteed: 4000, burst: 8000, priority: 0 as const },
    search: { guaranteed: 2000, burst: 4000 },
    reports: { guaranteed: 500, burst: 2000 },
  },
  policies: Object.fromEntries(
    Array.from({ length: POLICIES }, (_, n): [string, RoutePolicy] => [
      `policy-${n}`,
      n === 0 ? { rate: '100/min', tiers: { partner: '1000/min' } } : { rate: 100 + n },
    ]),
  ),
};

/** The change of an operator: a limit. The version tells one update from another. */
export function patchOf(number: number): ConfigLayer {
  return { version: number, policies: { 'policy-1': { rate: 200 + (number % 100) } } };
}
