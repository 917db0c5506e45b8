// The names of policies, declared once. It would hold for every file of a program, so this one is compiled by itself.
import {
  createRateLimiter,
  RateLimit,
  RateLimitModule,
  SkipRateLimit,
  type PolicyName,
  type RateLimiter,
  type RoutePolicy,
} from 'nestjs-weir';

export const policies = {
  search: { rate: '10/min' },
  login: { algorithm: 'sliding-window', rate: '5/h', key: 'ip' },
} satisfies Record<string, RoutePolicy>;

type Declared = typeof policies;

declare module 'nestjs-weir' {
  interface RateLimitPolicies extends Declared {
    /** Of a decorator, by its `name`. */
    own: unknown;
  }
}

declare const limiter: RateLimiter;

export const names: PolicyName[] = ['search', 'login', 'own'];
RateLimit('search');
RateLimit({ rate: '3/min', name: 'own' }, { instead: 'login' });
RateLimit((context) => (context.getType() === 'http' ? 'search' : { policy: 'login' }));
SkipRateLimit('search', 'own');
RateLimitModule.forRoot({ policies, apply: ['search'] });
void limiter.allow('login', 'ann');
RateLimitModule.forFeature({ own: { rate: '3/min' } });
// @ts-expect-error No such policy.
RateLimitModule.forRoot({ policies: { serach: { rate: '10/min' } } });
// @ts-expect-error No such policy.
RateLimitModule.forFeature({ serach: { rate: '10/min' } });
// @ts-expect-error No such policy.
createRateLimiter({ policies: { serach: { rate: '10/min' } } });
// @ts-expect-error No such policy.
RateLimit('serach');
// @ts-expect-error No such policy.
RateLimit({ rate: '3/min' }, { instead: 'serach' });
// @ts-expect-error No such policy.
RateLimit(() => 'serach');
// @ts-expect-error No such policy.
SkipRateLimit('search', 'serach');
// @ts-expect-error No such policy.
RateLimitModule.forRoot({ policies, apply: ['serach'] });
// @ts-expect-error No such policy.
void limiter.allow('serach', 'ann');
// @ts-expect-error No such policy.
void limiter.tryAcquire({ policy: 'serach', key: 'ann' });
