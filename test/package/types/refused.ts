// Code that the compiler refuses, and beside it code that it must not refuse. Part of the type check of the repository, against
// the sources, and of the tests of the package, against the types that are published.
import { type ExecutionContext } from '@nestjs/common';
import {
  createRateLimiter,
  durationOf,
  RateLimit,
  RateLimitModule,
  rateOf,
  SkipRateLimit,
  type AlgorithmName,
  type Duration,
  type PolicyInput,
  type Rate,
  type RateLimitModuleInput,
  type RoutePolicy,
} from 'nestjs-weir';

declare const fromEnvironment: string | undefined;
declare const algorithm: AlgorithmName;

// Rates and durations as people write them.
export const rates: Rate[] = ['100/s', '5/min', '1000/5m', '0.5/s', '1/d', '10/2hours', 7];
export const durations: Duration[] = ['2m', '250ms', '1.5h', '90 seconds', 'minute', '365d', 10];
export const read: Rate = rateOf(fromEnvironment ?? '100/min');
export const readToo: Duration = durationOf(fromEnvironment ?? '2m');
// @ts-expect-error Words are no slash.
export const words: Rate = '10 per minute';
// @ts-expect-error No such unit.
export const fortnight: Rate = '10/fortnight';
// @ts-expect-error A text without a period.
export const bare: Rate = '100';
// @ts-expect-error Nobody knows what is in it.
export const unknownRate: Rate = fromEnvironment ?? '100/min';
// @ts-expect-error No such unit.
export const months: Duration = '2 months';
// @ts-expect-error Nobody knows what is in it.
export const unknownDuration: Duration = String(fromEnvironment);

// Figures that come with requests are data.
export const plan = (_: ExecutionContext) => ({ rate: String(fromEnvironment), burst: 5 });
export const planned: RoutePolicy = { rate: '10/min', tier: plan };

// A policy has a limit.
export const byTier: PolicyInput = { tiers: { normal: 5, vip: '50/s' }, defaultTier: 'normal' };
// @ts-expect-error Nothing is limited.
export const empty: PolicyInput = {};
// @ts-expect-error Nothing is limited.
export const emptyToo: RateLimitModuleInput = { policies: { api: {} } };
// @ts-expect-error Nothing is limited.
RateLimit({ key: 'user' });
// @ts-expect-error Nothing is limited.
RateLimitModule.forFeature({ api: { burst: 5 } });
// @ts-expect-error No such unit.
createRateLimiter({ policies: { api: { rate: 5, tiers: { vip: '5/fortnight' } } } });

// An option that the algorithm does not look at.
export const any: PolicyInput = { algorithm, rate: 5 };
export const shaper: RoutePolicy = {
  ...{ algorithm: 'leaky-bucket', mode: 'shaper', maxDelay: '1s' },
  ...{ rate: 5, burst: 3 },
};
export const sub: PolicyInput = { algorithm: 'sliding-window', rate: 5, subWindows: 4 };
// @ts-expect-error A window has no burst.
export const windowBurst: PolicyInput = { algorithm: 'sliding-window', rate: 5, burst: 3 };
// @ts-expect-error A window has no burst.
RateLimit({ algorithm: 'sliding-window', rate: '5/min', burst: 3 });
// @ts-expect-error Only a leaky bucket makes requests wait.
export const bucketMode: PolicyInput = { rate: 5, mode: 'shaper' };
// @ts-expect-error Only windows have parts.
export const bucketParts: RoutePolicy = { rate: 5, subWindows: 4 };

// Options that somebody has to make.
export class Maker {
  createRateLimitOptions(): RateLimitModuleInput {
    return { policies: { api: { rate: '100/s' } } };
  }
}
RateLimitModule.forRootAsync({ useClass: Maker });
RateLimitModule.forRootAsync({ useExisting: Maker, imports: [] });
RateLimitModule.forRootAsync({
  inject: [Maker],
  useFactory: async (maker: Maker) => ({ ...maker.createRateLimitOptions(), ipv6Prefix: 56 }),
});
RateLimitModule.forRootAsync({ useFactory: () => ({ policies: { api: { rate: '5/s' } } }) });
// @ts-expect-error By nobody.
RateLimitModule.forRootAsync({});
// @ts-expect-error By two.
RateLimitModule.forRootAsync({ useClass: Maker, useFactory: () => ({}) });
// @ts-expect-error A factory is checked as well.
RateLimitModule.forRootAsync({ useFactory: () => ({ policies: { api: { rate: '5/eon' } } }) });

// Where no names are declared, every name will do.
RateLimit('search');
SkipRateLimit('search', 'login');
