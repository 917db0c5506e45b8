import { type ExecutionContext } from '@nestjs/common';
import { type LimitFigures } from '../limiter/given-limits.js';
import { type PolicyName } from '../limiter/policy-names.js';
import { type PerRequest } from './key-resolver.js';
import { type RouteFields } from './route-policy.js';

/** A policy by its name, and whose tokens of how many are taken this time. */
export interface PolicyUse {
  readonly policy: PolicyName;
  readonly key?: string;
  readonly tier?: string;
  /** The figures themselves, in place of a tier. */
  readonly limit?: LimitFigures;
  readonly cost?: number;
}

/** Chooses policies for a request: by name, with more to say, several (up to 1,000), or none. */
export type PolicyChoice = (
  context: ExecutionContext,
) => PolicyName | PolicyUse | readonly (PolicyName | PolicyUse)[] | undefined | null;

/** One `@RateLimit()`. */
export interface RateLimitEntry {
  /** Nothing but the app's quota, a policy by name, one of its own, or a choice per request. */
  readonly what: string | RouteFields | PolicyChoice | undefined;
  /** False leaves the app's quota out. */
  readonly quota: boolean | undefined;
  /** Policies further out in whose place this one stands. */
  readonly instead?: readonly string[];
}

/** One `@SkipRateLimit()`: everything, or policies by name. */
export type SkipEntry = readonly string[];

const ENTRIES = Symbol('weir:rate-limit');
const SKIPS = Symbol('weir:skip');
const COST = Symbol('weir:cost');
const HANDS_OVER = Symbol('weir:hands-over');

type Target = object;

/** Decorators are run from the last to the first; entries stay in the order they are written in. */
export function addEntry(target: Target, entry: RateLimitEntry): void {
  const known = Reflect.getOwnMetadata(ENTRIES, target) as RateLimitEntry[] | undefined;
  Reflect.defineMetadata(ENTRIES, [entry, ...(known ?? [])], target);
}

export function entriesOf(target: Target): readonly RateLimitEntry[] {
  return (Reflect.getMetadata(ENTRIES, target) as RateLimitEntry[] | undefined) ?? [];
}

export function setSkip(target: Target, names: SkipEntry): void {
  Reflect.defineMetadata(SKIPS, names, target);
}

export function skipOf(target: Target): SkipEntry | undefined {
  return Reflect.getMetadata(SKIPS, target) as SkipEntry | undefined;
}

export function setCost(target: Target, cost: PerRequest<number>): void {
  Reflect.defineMetadata(COST, cost, target);
}

export function costOf(target: Target): PerRequest<number> | undefined {
  return Reflect.getMetadata(COST, target) as PerRequest<number> | undefined;
}

/** Denials of the handler, or of all handlers of a class, are left to an interceptor. */
export function setHandsOver(target: Target): void {
  Reflect.defineMetadata(HANDS_OVER, true, target);
}

export function handsOver(target: Target): boolean {
  return Reflect.hasMetadata(HANDS_OVER, target);
}
