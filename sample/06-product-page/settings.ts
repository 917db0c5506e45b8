import { type RateLimitModuleInput, type ResourceOptions } from 'nestjs-weir';

/** What the page is called where its health is concerned. */
export const RESOURCE = 'product-page';

/** How many requests a second one user has. */
export const LIMITS = { large: '100/s', small: '2/s' } as const;

/**
 * Between two probes, and how long a stage of the ramp lasts. The library's default is ten seconds for
 * both; here people are watching.
 */
const PACE_MS = numberFrom('PACE_MS', 2000);

/** How long the slowest of the four services takes when all is well. */
export const UPSTREAM_MS = numberFrom('UPSTREAM_MS', 100);

/** A page has its answer by then, whatever happens. */
export const DEADLINE_MS = 1000;

const upstream: ResourceOptions = {
  deadline: 250,
  bulkhead: { maxInFlight: 100, maxWait: 50 },
  // Shorter than the pace of probes, so that a probe is not turned away by a breaker.
  breaker: { window: '5s', minimumCalls: 10, openFor: Math.ceil(PACE_MS / 2) },
};

export function settings(redisUrl: string | undefined): RateLimitModuleInput {
  return {
    store: redisUrl ? { type: 'redis', url: redisUrl, prefix: RESOURCE } : 'memory',
    // Whose answers these are in Redis.
    service: RESOURCE,
    policies: { view: { rate: LIMITS.large, key: 'user' } },
    protection: { base: upstream, reviews: upstream, sales: upstream, recommendations: upstream },
    degradation: {
      slow: 400,
      deadline: DEADLINE_MS,
      recovery: {
        ...{ window: '5s', minCalls: 10 },
        ...{ probeInterval: PACE_MS, stageMin: PACE_MS, minSamples: 3, stageMax: 4 * PACE_MS },
      },
    },
  };
}

function numberFrom(name: string, usual: number): number {
  const number = Number(process.env[name] || usual);
  if (number > 0) return number;
  console.error(`${name} must be a number of milliseconds, and is "${process.env[name]}".`);
  process.exit(1);
}
