import { InvalidArgumentError } from '../common/errors.js';
import { setSkip } from './route-metadata.js';
import { onClassOrMethod } from '../requests/nest-metadata.js';

/**
 * Leaves a handler, or all handlers of a class that have no `@RateLimit` of their own, without
 * limits; or only without the named policies.
 */
export function SkipRateLimit(...names: string[]): ClassDecorator & MethodDecorator {
  const odd: unknown = names.find((name) => typeof name !== 'string');
  if (odd !== undefined) {
    const expectation = "names of policies, as in @SkipRateLimit('search'), or nothing for all";
    throw new InvalidArgumentError('@SkipRateLimit', odd, expectation);
  }
  return onClassOrMethod((target) => setSkip(target, names));
}
