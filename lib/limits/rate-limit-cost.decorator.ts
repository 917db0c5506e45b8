import { InvalidArgumentError } from '../common/errors.js';
import { isAsyncFunction } from '../common/promises.js';
import { type PerRequest } from './key-options.js';
import { setCost } from './route-metadata.js';
import { onClassOrMethod } from '../requests/nest-metadata.js';

/** Tokens that a request takes, of every policy and of the quota: a number, or what it is worth. */
export function RateLimitCost(cost: PerRequest<number>): ClassDecorator & MethodDecorator {
  const isNumber = typeof cost === 'number' && Number.isInteger(cost) && cost >= 0;
  if (!isNumber && (typeof cost !== 'function' || isAsyncFunction(cost))) {
    throw new InvalidArgumentError(
      '@RateLimitCost',
      cost,
      'a whole number from 0 on, or a function that is not async',
    );
  }
  return onClassOrMethod((target) => setCost(target, cost));
}
