import { type ExecutionContext } from '@nestjs/common';
import { type Flat } from '../common/schema.js';
import { describe, didYouMean, InvalidArgumentError } from '../common/errors.js';
import { isAsyncFunction } from '../common/promises.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { type Decision } from '../limiter/decision.js';
import { type LimitFigures } from '../limiter/given-limits.js';
import {
  POLICY_OPTIONS,
  type ByAlgorithm,
  type PolicyFields,
  type WithLimit,
} from '../limiter/policy-options.js';
import {
  compileKey,
  isEarlyKey,
  isSharedKey,
  keyText,
  needsUser,
  NOT_ASYNC,
  paramsOf,
  type KeyOption,
  type KeyReader,
  type KeySettings,
  type PerRequest,
} from './key-resolver.js';
import { rejectThrottlerPolicy } from './throttler-words.js';

/**
 * Which limit of a policy a caller has: the name of a tier, or the figures themselves, as a token or
 * a database has them. A mere number is a rate; a text is a name.
 */
export type Tier = string | number | LimitFigures | undefined;

/** Looks a tier up, in a database or a cache; requests wait for it. */
export type TierLookup = (context: ExecutionContext) => Promise<Tier>;

/** Makes the error that a denied request ends with. */
export type Rejection = (decision: Decision, context: ExecutionContext) => Error | undefined;

/** How a policy is applied to requests. The initial values are the defaults. */
export class RouteOptions {
  /** The name for callers, of a policy that stands in a decorator. */
  name?: string;
  /** The key of a request: requests with the same key take from the same bucket. */
  key: KeyOption = 'ip';
  /** With `key: 'user'`: the key of callers without a name. */
  anonymous: KeyOption = 'ip';
  /**
   * Which of the policy's tiers a caller has: its name, or a function that says so, which may be
   * async. The function may also give the figures themselves, `{ rate: 500, burst: 50 }`: they are
   * part of what the bucket is called, so another plan begins with a full one. Figures that are none
   * mean the default tier, and are counted.
   */
  tier?: string | ((context: ExecutionContext) => Tier) | TierLookup;
  /** Tokens that a request takes; 0 is free. */
  cost?: PerRequest<number>;
  /** True for requests that this policy does not concern. */
  skipIf?: (context: ExecutionContext) => boolean;
  /** The error of a denied request, in place of the usual one, which is left if it fails. */
  rejection?: Rejection;
  /** HTTP: decided before all guards, also those that authenticate. For ip, header and global keys. */
  early = false;
}

/** A policy as it is written: a limit, and how it is applied to requests. */
export type RoutePolicy = Flat<RouteFields & ByAlgorithm & WithLimit>;

/** The options of a policy of the module before they are checked. */
export type RouteFields = Omit<PolicyFields, 'cost'> & Partial<RouteOptions>;

/** The options that plain JSON can carry, too; the others are functions, or the name in a decorator. */
export type PlainFields = Omit<RouteFields, 'name' | 'skipIf' | 'rejection'>;

/** How a policy is applied, compiled. */
export interface AppliedPolicy {
  readonly name: string;
  readonly keyOf: KeyReader;
  readonly keyText: string;
  readonly tier: RouteOptions['tier'];
  /** The names that it may have; `default` is the policy's own figures. */
  readonly tiers: ReadonlySet<string>;
  /** Only if it depends on the request; a plain number is the limiter's own affair. */
  readonly cost: ((context: ExecutionContext) => number) | undefined;
  /** If it does not. */
  readonly fixedCost: number | undefined;
  readonly skipIf: RouteOptions['skipIf'];
  readonly rejection: RouteOptions['rejection'];
  readonly early: boolean;
  /** Of no use to the limiter: for the warning about requests before authentication. */
  readonly needsUser: boolean;
  /** All callers take from the same bucket. */
  readonly isShared: boolean;
  /** The values of a request that the key reads, by path or place. */
  readonly params: readonly (string | number)[];
}

const ROUTE_OPTIONS: readonly (keyof RouteOptions)[] = [
  'name',
  'key',
  'anonymous',
  'tier',
  'skipIf',
  'rejection',
  'early',
];

/** Everything that a policy may say, of its figures and of requests; a named one has its name already. */
const KNOWN = [...POLICY_OPTIONS, ...ROUTE_OPTIONS.filter((option) => option !== 'name')];

/** No option that does not exist, nor those of others. */
export function checkNames(at: string, input: RouteFields, known: readonly string[] = KNOWN): void {
  rejectThrottlerPolicy(at, input);
  plainObject(at, input, 'an object with at least a rate');
  const { name: _, ...options } = input;
  rejectUnknown(at, options, known);
}

/** The same of one that stands in a decorator, and may be given a name for callers. */
export function checkInlineNames(at: string, input: RouteFields): void {
  checkNames(at, input, [...KNOWN, 'name']);
}

/** A tier that all requests have must be one; later a document may take it away, and they have the default one. */
export function checkTier(at: string, { tier, tiers }: RouteFields): void {
  if (typeof tier !== 'string' || tier === 'default') return;
  const known = Object.keys(tiers ?? {});
  if (known.includes(tier)) return;
  const expectation =
    known.length === 0 ? "no tier without 'tiers'" : `one of the tiers ${known.join(', ')}`;
  const hint = didYouMean(tier, known);
  const message = `${at}: expected ${expectation}, got ${describe(tier)}${hint && `;${hint}`}`;
  throw new InvalidArgumentError(at, tier, expectation, message);
}

/** The part of a policy that the limiter takes: its figures, without how they are applied to requests. */
export function limitPart(policy: RouteFields): PolicyFields {
  const {
    name: _name,
    key: _key,
    anonymous: _anonymous,
    tier: _tier,
    skipIf: _skipIf,
    rejection: _rejection,
    early: _early,
    ...limit
  } = policy;
  if (typeof limit.cost !== 'function') return limit as PolicyFields;
  const { cost: _cost, ...figures } = limit;
  return figures;
}

/** Compiles how a policy is applied to requests. */
export function applyPolicy(
  name: string,
  input: RouteFields,
  settings: KeySettings,
): AppliedPolicy {
  const at = `policies.${name}`;
  plainObject(at, input, 'an object with at least a rate');
  const { cost, ...rest } = input;
  const options = Object.assign(new RouteOptions(), rest) as RouteOptions;
  checkFunctions(at, { ...options, cost });
  if (options.name !== undefined) {
    throw new InvalidArgumentError(`${at}.name`, options.name, 'none: the policy has one');
  }
  if (options.early && !isEarlyKey(options.key)) {
    throw new InvalidArgumentError(`${at}.early`, options.key, 'a key of ip, header or global');
  }
  // A key that nobody needs yet is no place for mistakes either.
  compileKey(`${at}.anonymous`, options.anonymous, 'ip', settings);
  return {
    name,
    keyOf: compileKey(`${at}.key`, options.key, options.anonymous, settings),
    keyText: keyText(options.key),
    tier: options.tier,
    tiers: new Set(Object.keys(input.tiers ?? {})),
    cost: typeof cost === 'function' ? cost : undefined,
    fixedCost: typeof cost === 'number' ? cost : undefined,
    skipIf: options.skipIf,
    rejection: options.rejection,
    early: options.early,
    needsUser: needsUser(options.key),
    isShared: isSharedKey(options.key),
    params: paramsOf([options.key, options.anonymous]),
  };
}

/** A function where a value is expected would be one that silently does nothing. */
function checkFunctions(at: string, options: RouteOptions): void {
  const { skipIf, rejection, tier, cost, early } = options;
  for (const [option, value] of Object.entries({ skipIf, rejection, cost })) {
    if (isAsyncFunction(value)) throw new InvalidArgumentError(`${at}.${option}`, value, NOT_ASYNC);
  }
  for (const [option, value] of Object.entries({ skipIf, rejection })) {
    if (value !== undefined && typeof value !== 'function') {
      throw new InvalidArgumentError(`${at}.${option}`, value, 'a function');
    }
  }
  const isTier = typeof tier === 'function' || (typeof tier === 'string' && tier !== '');
  if (tier !== undefined && !isTier) {
    throw new InvalidArgumentError(`${at}.tier`, tier, 'the name of a tier, or a function');
  }
  if (cost !== undefined && typeof cost !== 'function' && typeof cost !== 'number') {
    throw new InvalidArgumentError(`${at}.cost`, cost, 'a number, or a function');
  }
  if (typeof early !== 'boolean') {
    throw new InvalidArgumentError(`${at}.early`, early, 'true or false');
  }
}
