// An application's use of what needs no optional peer.
import { createRateLimiter, type RateLimiter, type Decision, type PolicyInput } from 'nestjs-weir';
import { LeakyBucket } from 'nestjs-weir/algorithms';
import { checkDocument, type ConfigDocument } from 'nestjs-weir/config';
import { Degradation, Degrade } from 'nestjs-weir/degradation';
import { Protect, Protection } from 'nestjs-weir/protection';
import { ManualClock, overrideRateLimits, type RateLimitMatchers } from 'nestjs-weir/testing';

export const clock: ManualClock = new ManualClock();
export type Matchers = RateLimitMatchers;
const policy: PolicyInput = { rate: '5/min', failureMode: 'closed' };
const limiter: RateLimiter = createRateLimiter({ policies: { policy }, clock });
export const decided: Decision | Promise<Decision> = limiter.tryAcquire({
  ...{ policy: 'policy', key: 'k' },
});
export const document: ConfigDocument = checkDocument({ policies: { policy } });
export const features = [Degradation, Degrade, Protect, Protection];
// Without types all of this would be allowed.
// @ts-expect-error No module to override.
overrideRateLimits(clock);
// @ts-expect-error A text.
export const wrongBucket = new LeakyBucket({ capacity: '5', rate: 1 });
// @ts-expect-error A yes or no, or a promise of it.
export const wrong: number = limiter.allow('policy', 'k');
