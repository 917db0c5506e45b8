import { type ExecutionContext } from '@nestjs/common';
import { type RateLimitModuleInput, type RouteFields, type RoutePolicy } from 'nestjs-weir';
import { type ManualClock } from '../../support/manual-clock.js';
import { CALLER, callerOf } from './caller.js';

/** More than tests have at a time. */
export const IN_FLIGHT = 1000;

const key = (context: ExecutionContext): string => callerOf(context).key;

const perMinute = (
  rate: number,
  more: Pick<RouteFields, 'key' | 'anonymous' | 'skipIf' | 'shadow'> = {},
): RoutePolicy => ({
  rate,
  period: '1m',
  key,
  ...more,
});

/** The limits of every application here, whatever it is called by. */
export const limits = (clock: ManualClock): RateLimitModuleInput => ({
  clock,
  policies: {
    two: perMinute(2),
    three: perMinute(3),
    narrow: perMinute(1),
    wide: perMinute(3),
    'per-user': perMinute(2, { key: 'user', anonymous: key }),
    members: perMinute(1, { skipIf: (context) => callerOf(context).isVip === true }),
    watched: perMinute(1, { shadow: true }),
    everywhere: perMinute(2, { skipIf: (context) => callerOf(context).isCounted !== true }),
  },
  // No request is let through, as an operator might set it.
  protection: { closed: { breaker: { mode: 'forced', openFor: '7s' } } },
  apply: ['everywhere'],
  overload: {
    ...{ enabled: true, maxInFlight: IN_FLIGHT, maxWaiting: 1 },
    isExempt: ({ headers }) => String(headers[CALLER]).includes('"isHelper":true'),
  },
  quota: { apps: { small: { guaranteed: 2 }, large: { guaranteed: 100_000 } } },
  app: (context) => callerOf(context).app ?? 'large',
});
