import {
  applyDecorators,
  createParamDecorator,
  UseFilters,
  UseGuards,
  type ExecutionContext,
} from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { isAsyncFunction } from '../common/promises.js';
import { rejectUnknown } from '../common/validate.js';
import { type Decision } from '../limiter/decision.js';
import { type PolicyName } from '../limiter/policy-names.js';
import { onClassOrMethod } from '../requests/nest-metadata.js';
import { subjectOf } from '../requests/subject.js';
import { chargeOf, primitiveDecisionOf } from './charges.js';
import { type PerRequest } from './key-resolver.js';
import { ClassRateLimitGuard, RateLimitGuard } from './rate-limit.guard.js';
import { RateLimitFilter } from './rate-limit.filter.js';
import {
  addEntry,
  setCost,
  setSkip,
  type PolicyChoice,
  type RateLimitEntry,
} from './route-metadata.js';
import { type RoutePolicy } from './route-policy.js';
import { rejectThrottlerOptions, rejectThrottlerPolicy } from './throttler-words.js';

/** Options of `@RateLimit` beside the policy: whether the quota is charged, and which policies this one replaces. */
export interface RateLimitOptions {
  /** False leaves the app's quota out. */
  readonly quota?: boolean;
  /**
   * Policies of the class or of `apply` that this one takes the place of here, early ones too: by
   * their names, those of an inline policy by its `name`.
   */
  readonly instead?: PolicyName | readonly PolicyName[];
}

/**
 * Limits a handler, or all handlers of a class.
 *
 * `@RateLimit()` charges the app's quota; `@RateLimit('name')` a policy of the module's options as
 * well; `@RateLimit({ rate: '10/min' })` one of its own, for each handler by itself;
 * `@RateLimit((context) => 'name')` one that is chosen for each request. Several add up, and all
 * of them must pass; the same name twice is charged once. `{ instead: 'name' }` beside one puts it in the
 * place of a policy of the class or of the whole application.
 *
 * It brings its guard and its filter along, so it works wherever a guard does: on controllers,
 * gateways and resolvers, in hybrid apps and in microservices.
 */
export function RateLimit(
  what?: PolicyName | PolicyChoice | (RoutePolicy & RateLimitOptions),
  settings: RateLimitOptions = {},
): ClassDecorator & MethodDecorator {
  if (what !== undefined && !['string', 'function', 'object'].includes(typeof what)) {
    throw new InvalidArgumentError(
      '@RateLimit',
      what,
      'the name of a policy, a policy, or a function',
    );
  }
  rejectThrottlerOptions('@RateLimit', what);
  rejectThrottlerPolicy('@RateLimit', what);
  if (isAsyncFunction(what)) {
    throw new InvalidArgumentError('@RateLimit', what, 'a choice that is not async');
  }
  const said = entryOf(what, settings);
  return applyDecorators(
    onClassOrMethod((target) => addEntry(target, said)),
    useGuard,
    UseFilters(RateLimitFilter),
  );
}

/** `{ quota: false }` alone is no policy, but without it only the app's quota would be left. */
function entryOf(
  what: Parameters<typeof RateLimit>[0],
  settings: RateLimitOptions,
): RateLimitEntry {
  rejectUnknown('@RateLimit', settings, SETTINGS);
  if (typeof what !== 'object') return entry(what, settings);
  const { quota = settings.quota, instead = settings.instead, ...policy } = what;
  return entry(policy, { quota, instead });
}

function entry(what: RateLimitEntry['what'], { quota, instead }: RateLimitOptions): RateLimitEntry {
  if (instead === undefined) return { what, quota };
  const names: readonly unknown[] = typeof instead === 'string' ? [instead] : instead;
  if (Array.isArray(names) && names.every((name) => typeof name === 'string')) {
    return { what, quota, instead: names };
  }
  throw new InvalidArgumentError('@RateLimit.instead', instead, 'the name of a policy, or a list');
}

const SETTINGS: readonly (keyof RateLimitOptions)[] = ['quota', 'instead'];

/** The guard of a class runs earlier, and charges less. */
function useGuard(target: object, key?: string | symbol, descriptor?: PropertyDescriptor): void {
  if (descriptor === undefined) UseGuards(ClassRateLimitGuard)(target as new () => unknown);
  else UseGuards(RateLimitGuard)(target, key!, descriptor);
}

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

/**
 * Leaves a handler, or all handlers of a class that have no `@RateLimit` of their own, without
 * limits; or only without the named policies.
 */
export function SkipRateLimit(...names: PolicyName[]): ClassDecorator & MethodDecorator {
  const odd: unknown = names.find((name) => typeof name !== 'string');
  if (odd !== undefined) {
    const expectation = "names of policies, as in @SkipRateLimit('search'), or nothing for all";
    throw new InvalidArgumentError('@SkipRateLimit', odd, expectation);
  }
  return onClassOrMethod((target) => setSkip(target, names));
}

/** A parameter of a handler: what was decided for this request. Undefined if it was not limited. */
export const RateLimitDecision: () => ParameterDecorator = createParamDecorator(
  (_data: unknown, context: ExecutionContext): Decision | undefined =>
    chargeOf(subjectOf(context))?.decision ?? primitiveDecisionOf(context),
);
