import { createHash } from 'node:crypto';
import {
  describe,
  didYouMean,
  InvalidArgumentError,
  mustStay,
  UnknownOptionError,
} from '../common/errors.js';
import { isImmutable } from '../common/immutable.js';
import { type Decision } from '../limiter/decision.js';
import { type LimitInput } from '../limiter/given-limits.js';
import { type PolicyFields, type PolicyInput } from '../limiter/policy-options.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { type ExecutionContext } from '@nestjs/common';
import { NotYet } from './awaited-values.js';
import { callerOf, type KeySettings } from './key-resolver.js';
import { type RequestReader } from '../requests/transport.js';
import {
  applyPolicy,
  checkInlineNames,
  checkNames,
  checkTier,
  limitPart,
  type AppliedPolicy,
  type Rejection,
  type RouteFields,
} from './route-policy.js';

/** The policies that routes may name, wherever they come from: the root, features, decorators. */
export class RoutePolicies {
  private readonly policies = new Map<string, AppliedPolicy>();
  /** The policies of the code. */
  private readonly written = new Map<string, RouteFields>();
  /** Policies that a document decides about: not those of a route that is found after the start. */
  private readonly governed = new Set<string>();
  /** The policies of the document that is in force. */
  private given: Readonly<Record<string, RouteFields>> = {};
  /** The first place that names each policy, for as long as the process lives. */
  private readonly uses = new Map<string, string>();
  private chooser: string | undefined;
  /** Policies that stand in a decorator: no other route can name them. */
  private readonly inline = new Set<string>();
  /** Their names for callers: the name of a method is none of a caller's business. */
  private readonly publicNames = new Map<string, string>();

  constructor(
    private readonly limiter: RateLimiter,
    private readonly settings: KeySettings,
    /** That of the application, for all policies without one of their own. */
    private readonly rejection?: Rejection,
    /** Fields that a test lays over policies, by name. */
    private readonly overrides: Readonly<Record<string, RouteFields>> = {},
  ) {}

  /** How much of an IPv6 address is a key. */
  get ipv6Prefix(): number {
    return this.settings.ipv6Prefix;
  }

  define(given: Readonly<Record<string, RouteFields>>): void {
    const policies = Object.fromEntries(
      Object.entries(given).map(([name, input]) => [name, this.overridden(name, input)]),
    );
    const limits: Record<string, PolicyFields> = {};
    const applied = Object.entries(policies).map(([name, input]) => {
      checkNames(`policies.${name}`, input);
      checkTier(`policies.${name}.tier`, input);
      limits[name] = limitPart(input);
      return applyPolicy(name, input, this.settings);
    });
    // The limiter checks them.
    this.limiter.define(limits as Record<string, PolicyInput>);
    for (const policy of applied) this.policies.set(policy.name, policy);
    for (const [name, input] of Object.entries(policies)) this.written.set(name, input);
  }

  defineInline(name: string, input: RouteFields): AppliedPolicy {
    const { name: publicName = neutralName(name), ...policy } = input;
    if (typeof publicName !== 'string' || !PUBLIC_NAME.test(publicName)) {
      const expectation = 'up to 64 letters, digits and _ . -';
      throw new InvalidArgumentError(`name of @RateLimit on ${name}`, publicName, expectation);
    }
    checkInlineNames(`@RateLimit on ${name}`, policy);
    try {
      this.define({ [name]: policy });
    } catch (error) {
      throw toldByPlace(error, name);
    }
    this.inline.add(name);
    this.publicNames.set(name, publicName);
    return this.use(name, `@RateLimit on ${name}`);
  }

  /** Throws if a test overrides a policy that nobody has defined. */
  checkOverrides(): void {
    for (const name of Object.keys(this.overrides)) this.get(name, 'overrideRateLimits');
  }

  private overridden(name: string, input: RouteFields): RouteFields {
    return Object.hasOwn(this.overrides, name) ? { ...input, ...this.overrides[name] } : input;
  }

  readonly publicNameOf = (policy: string): string => this.publicNames.get(policy) ?? policy;

  /** The policies as the code has them; from now on a document decides about them. */
  govern(): Readonly<Record<string, RouteFields>> {
    for (const name of this.written.keys()) this.governed.add(name);
    return Object.fromEntries(this.written);
  }

  /**
   * Checks what policies are to be from now on, and compiles how they are applied. Functions of the
   * code go on where nothing takes their place. The result brings it into force.
   */
  prepare(document: Readonly<Record<string, RouteFields>>): () => void {
    this.checkUses(this.missingIn(document));
    const next: AppliedPolicy[] = [];
    const before = isImmutable(document) && isImmutable(this.given) ? this.given : {};
    for (const name of Object.keys(document)) {
      const given = document[name]!;
      const isAlike = Object.hasOwn(before, name) && isAppliedAlike(before[name]!, given);
      if (!isAlike) next.push(this.reapply(name, given));
    }
    return () => {
      for (const name of this.missingIn(document)) this.policies.delete(name);
      this.given = document;
      for (const applied of next) {
        this.governed.add(applied.name);
        const before = this.policies.get(applied.name);
        // Routes hold on to it, so it changes where it is.
        if (before !== undefined) Object.assign(before, applied);
        else this.policies.set(applied.name, applied);
      }
    };
  }

  /** The policies of the code that such a document has taken away. */
  missingIn(document: object): string[] {
    const missing: string[] = [];
    for (const name of this.governed) if (!Object.hasOwn(document, name)) missing.push(name);
    return missing;
  }

  /** The names of all policies that the limiter has with such a document in force. */
  namesWith(document: object): string[] {
    const others = this.limiter.policyNames().filter((name) => !this.governed.has(name));
    return [...new Set([...others, ...Object.keys(document)])];
  }

  /** As `get`, for a route that will need it for good. */
  use(name: string, where: string): AppliedPolicy {
    const policy = this.get(name, where);
    if (!this.uses.has(name)) this.uses.set(name, where);
    return policy;
  }

  /** A function will choose among policies; which, is known only then. */
  useAll(where: string): void {
    this.chooser ??= where;
  }

  /** The caller's name; undefined as long as there is none. */
  callerOf(context: ExecutionContext, reader: RequestReader): string | undefined {
    try {
      return callerOf(context, reader, this.settings);
    } catch (error) {
      if (error instanceof NotYet) throw error;
      // The key of such a request shows the error.
      return undefined;
    }
  }

  has(name: string): boolean {
    return this.policies.has(name);
  }

  find(name: string): AppliedPolicy | undefined {
    return this.policies.get(name);
  }

  /** Throws if a request, which may have a cost of its own, cannot bring such figures along. */
  checkLimit(name: string, limit: LimitInput, cost?: number): void {
    this.limiter.checkLimit(name, limit, cost);
  }

  /** The application's own error for a denial: of the policy, or of the module for all. */
  ownRejectionOf(decision: Decision, context: ExecutionContext): Error | undefined {
    const isOfPolicy = decision.tier === 'policy';
    const own = isOfPolicy ? this.policies.get(decision.policy)?.rejection : undefined;
    if (own !== undefined) return own(decision, context);
    return this.rejection?.({ ...decision, policy: this.publicNameOf(decision.policy) }, context);
  }

  /** A caller without a name was limited by the policy's `anonymous` key. */
  countAnonymous(policy: string): void {
    this.limiter.countAnonymous(policy);
  }

  /** The tokens that a request takes of a policy by default. */
  fixedCostOf(name: string): number {
    return this.policies.get(name)?.fixedCost ?? 1;
  }

  /** `where` is the place that names it, for the message of the error. */
  get(name: string, where: string): AppliedPolicy {
    const policy = this.policies.get(name);
    if (policy !== undefined) return policy;
    throw this.unknown(name, where);
  }

  unknown(name: string, where: string): InvalidArgumentError {
    const known = [...this.policies.keys()].filter((one) => !this.inline.has(one)).sort();
    const expectation =
      known.length === 0
        ? "a policy, but there are none: the option 'policies' defines them"
        : `one of the policies ${known.join(', ')}`;
    // A choice is a function of the application, and may say anything.
    const hint = typeof name === 'string' ? hintFor(name, where, known) : '';
    const message = `${where}: expected ${expectation}, got ${describe(name)}`;
    return new InvalidArgumentError(where, name, expectation, message + (hint && `;${hint}`));
  }

  private checkUses(missing: readonly string[]): void {
    for (const name of missing) {
      const where = this.uses.get(name) ?? (this.written.has(name) ? this.chooser : undefined);
      if (where !== undefined) throw mustStay(`policies.${name}`, where);
    }
  }

  private reapply(name: string, given: RouteFields): AppliedPolicy {
    const input = { ...functionsOf(this.written.get(name)), ...given };
    const applied = applyPolicy(name, input, this.settings);
    const isEarly = this.policies.get(name)?.early ?? applied.early;
    if (applied.early === isEarly) return applied;
    // Middleware is mounted when the application starts.
    throw new InvalidArgumentError(
      `policies.${name}.early`,
      applied.early,
      `${isEarly}, as it was`,
    );
  }
}

/** A hint at the name that was meant by one that no policy has. */
function hintFor(name: string, where: string, known: readonly string[]): string {
  if (RATE.test(name)) return ` for a limit of its own write @RateLimit({ rate: '${name}' })`;
  if (name === 'quota' && where === 'apply') {
    return " policies charge the quota as well, so leave it out of the list, or write apply: 'quota' for it alone";
  }
  return didYouMean(name, known);
}

/** No name of a policy has a slash. */
const RATE = /^\d+\/\w+$/;

const PUBLIC_NAME = /^[\w.-]{1,64}$/;

/** The same in all processes, and in all deployments in which the method is called the same. */
function neutralName(policy: string): string {
  return `limit-${createHash('sha256').update(policy).digest('hex').slice(0, 8)}`;
}

/** The options of a policy about requests that a document may change; the rest are figures. */
const APPLICATION = ['key', 'anonymous', 'tier', 'tiers', 'cost', 'early'] as const;

/** An unchanged list is the same object, so lists need not be looked into. */
function isAppliedAlike(before: RouteFields, given: RouteFields): boolean {
  return before === given || APPLICATION.every((option) => before[option] === given[option]);
}

function functionsOf(input: RouteFields | undefined): RouteFields {
  return Object.fromEntries(Object.entries(input ?? {}).filter(([, value]) => !isPlain(value)));
}

/** A key may be a list, and a function one of its parts. */
function isPlain(value: unknown): boolean {
  return Array.isArray(value) ? value.every(isPlain) : typeof value !== 'function';
}

/** No code of the application has a policy of the name that one in a decorator gets here. */
function toldByPlace(error: unknown, name: string): unknown {
  if (!(error instanceof InvalidArgumentError) || error instanceof UnknownOptionError) return error;
  const { field, value, expectation, message } = error;
  const told = message.replace(`policies.${name}.`, () => `@RateLimit on ${name}: `);
  return new InvalidArgumentError(field, value, expectation, told);
}
