import { setSkip } from '../guards/index.js';
import { onClassOrMethod } from './on-class-or-method.js';

/**
 * Leaves a handler, or all handlers of a class that have no `@RateLimit` of their own, without
 * limits; or only without the named policies.
 */
export function SkipRateLimit(...names: string[]): ClassDecorator & MethodDecorator {
  return onClassOrMethod((target) => setSkip(target, names));
}
