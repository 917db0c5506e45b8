import { type ExecutionContext } from '@nestjs/common';
import { nginxLimit, type RateLimitModuleInput } from 'nestjs-weir';

const headerOf = (context: ExecutionContext, name: string): string | undefined =>
  context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>().headers[
    name
  ];

const merchant = (context: ExecutionContext): string | undefined => headerOf(context, 'x-merchant');

/** The layers of a shop, from the door inwards. Rates are by the minute, so that no test runs against them. */
export function shopOptions(url: string, nodeId: string): RateLimitModuleInput {
  return {
    ...{ nodeId, service: 'shop', app: 'shop' },
    // A machine that is short of time must not look like an outage.
    store: { type: 'redis', url, decisionTimeout: '2s' },
    config: { poll: 500 },
    user: (context) => headerOf(context, 'x-user'),
    quota: {
      cluster: { capacity: 10_000 },
      apps: { shop: { guaranteed: 5000, burst: 8000, priority: 0 } },
    },
    policies: {
      ip: { ...nginxLimit({ rate: '10r/s', burst: 2 }), key: 'ip', scope: 'node', early: true },
      uri: { rate: 5000, key: 'route', scope: 'node' },
      user: {
        ...{ key: 'user', tiers: { normal: '10/min', vip: '50/min' }, defaultTier: 'normal' },
        tier: (context) => headerOf(context, 'x-user-tier'),
      },
      merchant: {
        ...{ key: merchant, tiers: { C: '100/min', S: '1000/min' }, defaultTier: 'C' },
        tier: (context) => headerOf(context, 'x-merchant-tier'),
        skipIf: (context) => merchant(context) === undefined,
        // Counted to the token: what a process holds on lease, and what is lost with a lease, tells nothing of charges.
        sync: 'exact',
      },
      product: { algorithm: 'sliding-window', rate: '400/min', key: { param: 'params.id' } },
      order: { rate: '10/min', key: 'user' },
    },
    apply: ['ip'],
    protection: {
      cache: { preset: 'redis' },
      db: { preset: 'database', breaker: { minimumCalls: 10, openFor: '300ms' } },
    },
    degradation: {
      recovery: {
        ...{ minCalls: 10, probeInterval: '100ms', steps: [10, 30, 50, 100] },
        ...{ stageMin: '50ms', minSamples: 2, stageMax: '200ms' },
      },
    },
  };
}
