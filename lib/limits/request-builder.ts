import { type ExecutionContext } from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { isStrayPromise } from '../common/promises.js';
import { type Decision } from '../limiter/decision.js';
import { type LimitInput } from '../limiter/given-limits.js';
import { type AcquireRequest, type PolicyRequest } from '../limiter/rate-limiter.js';
import { NotYet, type AwaitedValues } from './awaited-values.js';
import { type Ledger } from './charges.js';
import { orderHint } from './guard-order.js';
import { ANONYMOUS, NO_KEY, textOf, type PerRequest } from './key-resolver.js';
import { type RoutePolicies } from './route-policies.js';
import { UnknownLimit } from '../requests/rejections.js';
import { type TierRequest } from '../requests/tier.js';
import { CallerGone, type RequestReader } from '../requests/transport.js';
import { type PolicyChoice, type PolicyUse } from './route-metadata.js';
import { type RoutePlan } from './route-plan.js';
import { type AppliedPolicy, type Tier } from './route-policy.js';

/** Called for requests with a fault; the limit holds all the same. `RequestFaults` counts them. */
export interface FaultListener {
  missing(policy: string, cause: unknown, keyText: string): void;
  /** The hint says how to have the caller known by then. */
  beforeAuthentication(policy: string, hint: () => string): void;
  promised(policy: string, what: string, then: string): void;
  failed(policy: string | undefined, what: string, cause: unknown, then: string): void;
  unknownTier(policy: string, tier: string, tiers: ReadonlySet<string>): void;
}

/** How many policies and keys one choice may name. */
const MOST_CHOSEN = 1000;

/** Builds the limiter's request out of a request and the plan of its route. */
export class RequestBuilder {
  constructor(
    private readonly routePolicies: RoutePolicies,
    private readonly app: PerRequest<string> | undefined,
    private readonly faults: FaultListener,
    readonly awaited: AwaitedValues,
    /** The module's `tier`; it has its own way to tell of faults. */
    private readonly tierOfAll?: (request: TierRequest) => string | undefined,
  ) {}

  /** The request of a route with one plain policy. */
  single(
    policy: AppliedPolicy,
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
  ): PolicyRequest {
    const key = this.keyOf(policy, plan, context, reader);
    return requestOf(policy.name, key, this.tierOf(policy, plan, context, reader));
  }

  /** Everything that the plan charges, less what was paid already. */
  all(
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
    ledger: Ledger | undefined,
  ): AcquireRequest[] {
    const requests: AcquireRequest[] = [];
    for (const policy of plan.policies) {
      if (this.isSkipped(policy, context)) continue;
      const cost = this.costFor(policy, plan, context);
      if (cost === 0) continue;
      this.add(requests, { ...this.single(policy, plan, context, reader), cost }, ledger);
    }
    for (const choice of plan.choices) {
      for (const use of this.chosenBy(choice, context)) {
        this.add(requests, this.chosen(use, plan, context, reader), ledger);
      }
    }
    if (plan.usesQuota) this.addQuota(plan, context, reader, ledger, requests);
    return requests;
  }

  /** The tokens of a request that names no cost. */
  readonly costOf = ({ policy, cost }: AcquireRequest): number =>
    cost ?? (policy === undefined ? 1 : this.routePolicies.fixedCostOf(policy));

  /** Whether all callers take the tokens of this plan from the same buckets. */
  areShared({ policies, choices, usesQuota }: RoutePlan): boolean {
    if (choices.length > 0 || (usesQuota && typeof this.app === 'function')) return false;
    return policies.every((policy) => policy.isShared);
  }

  /** The application's own error for a denial; undefined if it leaves that to the transport. */
  ownRejectionOf(decision: Decision, context: ExecutionContext): unknown {
    return this.routePolicies.ownRejectionOf(decision, context);
  }

  /** Whether the application can say by now who is calling. */
  knowsCaller(context: ExecutionContext, reader: RequestReader): boolean {
    return this.routePolicies.callerOf(context, reader) !== undefined;
  }

  /** Each policy and key once, and only for what it has not been paid. */
  private add(
    requests: AcquireRequest[],
    request: AcquireRequest,
    ledger: Ledger | undefined,
  ): void {
    if (request.cost === 0) return;
    const twin = requests.findIndex((one) => isSame(one, request));
    const paid = ledger?.paidFor(request) ?? 0;
    const due = paid === 0 ? request : { ...request, cost: this.costOf(request) - paid };
    if (paid > 0 && due.cost! <= 0) return;
    if (twin === -1) requests.push(due);
    else if (this.costOf(due) > this.costOf(requests[twin]!)) requests[twin] = due;
  }

  private chosenBy(choice: PolicyChoice, context: ExecutionContext): PolicyUse[] {
    let chosen: ReturnType<PolicyChoice>;
    try {
      chosen = choice(context);
    } catch (error) {
      throw new UnknownLimit(error);
    }
    const isAsync = isStrayPromise(chosen);
    const uses = isAsync ? [] : listOf(chosen);
    if (isAsync || holdPromises(uses)) {
      throw new UnknownLimit('a choice of policies must not be async');
    }
    if (uses.length <= MOST_CHOSEN) return uses;
    // Of what a caller has listed, most likely. Each is looked for among the others, and all go to Redis at once.
    throw new InvalidArgumentError('cost', uses.length, `a choice of ${MOST_CHOSEN} at most`);
  }

  private chosen(
    use: PolicyUse,
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
  ): PolicyRequest {
    const { policy: name, key, tier, limit, cost } = use;
    const policy = this.routePolicies.find(name);
    if (policy === undefined) {
      throw new UnknownLimit(this.routePolicies.unknown(name, `the choice of ${plan.id}`));
    }
    const whose =
      key === undefined ? this.keyOf(policy, plan, context, reader) : this.given(name, key);
    const figures = limit === undefined ? undefined : this.checked(name, limit, plan);
    const chosen =
      figures ?? this.named(policy, tier) ?? this.tierOf(policy, plan, context, reader);
    return {
      ...requestOf(name, whose, chosen),
      cost: cost ?? this.costFor(policy, plan, context),
    };
  }

  private addQuota(
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
    ledger: Ledger | undefined,
    requests: AcquireRequest[],
  ): void {
    const cost = this.computed(plan.cost, plan.id, context);
    if (cost === 0) return;
    this.add(
      requests,
      { app: this.appOf(context), cost, method: reader.methodOf(context) },
      ledger,
    );
  }

  private appOf(context: ExecutionContext): string {
    let app: string | undefined;
    try {
      app = resolve(this.app, context);
    } catch (error) {
      throw new UnknownLimit(error);
    }
    if (isStrayPromise(app)) throw new UnknownLimit("the option 'app' must not be async");
    // An app that a caller has left out is one that nobody knows; without the field this would be a policy's request.
    return app ?? '';
  }

  /** A promise is no answer: an async function would otherwise skip everything. */
  private isSkipped({ name, skipIf }: AppliedPolicy, context: ExecutionContext): boolean {
    if (skipIf === undefined) return false;
    try {
      const skips: unknown = skipIf(context);
      if (isStrayPromise(skips)) this.faults.promised(name, 'skipIf', 'The policy holds.');
      return skips === true;
    } catch (error) {
      this.faults.failed(name, 'skipIf', error, 'The policy holds.');
      return false;
    }
  }

  private costFor(
    { name, cost }: AppliedPolicy,
    plan: RoutePlan,
    context: ExecutionContext,
  ): number | undefined {
    return this.computed(plan.cost, name, context) ?? this.computed(cost, name, context);
  }

  /** A cost that fails is none that a request may have; see `badRequestOf`. */
  private computed(
    cost: PerRequest<number> | undefined,
    name: string,
    context: ExecutionContext,
  ): number | undefined {
    if (typeof cost !== 'function') return cost;
    let value: unknown;
    try {
      value = cost(context);
    } catch (error) {
      this.faults.failed(name, 'cost', error, 'Such requests are denied.');
      value = NaN;
    }
    if (value === undefined || value === null) return undefined;
    if (isStrayPromise(value)) {
      this.faults.promised(name, 'cost', 'Such requests pay as if they had none.');
      return undefined;
    }
    if (Number.isInteger(value) && (value as number) >= 0) return value as number;
    throw new InvalidArgumentError('cost', value, 'a whole number, or 0 for a free request');
  }

  /** A caller without a tier has the default one. */
  private tierOf(
    policy: AppliedPolicy,
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
  ): string | LimitInput | undefined {
    const { name, tier, tiers } = policy;
    if (typeof tier !== 'function') {
      if (tier !== undefined || tiers.size === 0 || this.tierOfAll === undefined) return tier;
      return this.tierOfAll(reader.rawRequestOf(context));
    }
    let value: Tier | null;
    try {
      value = this.awaited.read<Tier | null>(name, tier, context) ?? undefined;
    } catch (error) {
      if (error instanceof NotYet) throw error;
      this.faults.failed(name, 'tier', error, DEFAULT_TIER);
      return undefined;
    }
    if (typeof value === 'string') this.checkTier(policy, value);
    return value === undefined || typeof value === 'string'
      ? value
      : this.checked(name, value, plan);
  }

  /** The tier of a choice is a name: figures that a caller has put in its place are none of the application's. */
  private named(policy: AppliedPolicy, tier: unknown): string | undefined {
    if ((tier ?? undefined) === undefined) return undefined;
    if (typeof tier === 'string') {
      this.checkTier(policy, tier);
      return tier;
    }
    this.faults.failed(policy.name, 'tier', 'it is no name', DEFAULT_TIER);
    return 'default';
  }

  /** A name that is no tier means the policy's own figures, and may be a slip, unless it says so. */
  private checkTier({ name, tiers }: AppliedPolicy, tier: string): void {
    const isUsual = tier === 'default' || tier === 'normal';
    if (!isUsual && !tiers.has(tier)) this.faults.unknownTier(name, tier, tiers);
  }

  /** Figures that can be a limit of the policy; undefined, and counted, if they cannot. */
  private checked(name: string, figures: LimitInput, { cost }: RoutePlan): LimitInput | undefined {
    try {
      this.routePolicies.checkLimit(name, figures, typeof cost === 'number' ? cost : undefined);
      return figures;
    } catch (error) {
      this.faults.failed(name, 'tier', error, DEFAULT_TIER);
      return undefined;
    }
  }

  private keyOf(
    policy: AppliedPolicy,
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
  ): string {
    let cause: unknown;
    try {
      const key = policy.keyOf(context, reader, plan.id);
      if (policy.needsUser && key?.includes(ANONYMOUS))
        this.lookForUser(policy, plan, context, reader);
      if (key !== undefined) return key;
    } catch (error) {
      if (error instanceof NotYet || error instanceof CallerGone) throw error;
      cause = error ?? 'nothing was said';
    }
    return this.noKey(policy.name, cause, policy.keyText);
  }

  /** A choice is a function of the application, and may say what its type does not allow. */
  private given(policy: string, key: unknown): string {
    return textOf(key) ?? this.noKey(policy, undefined, 'its choice');
  }

  private noKey(policy: string, cause: unknown, keyText: string): string {
    this.faults.missing(policy, cause, keyText);
    return NO_KEY;
  }

  private lookForUser(
    { name }: AppliedPolicy,
    { id }: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
  ): void {
    this.routePolicies.countAnonymous(name);
    if (reader.headerOf(context, 'authorization') === undefined) return;
    this.faults.beforeAuthentication(name, () => orderHint(name, id, context));
  }
}

const DEFAULT_TIER = 'Such requests have the default tier.';

function requestOf(policy: string, key: string, tier: LimitInput | undefined): PolicyRequest {
  return tier === undefined || typeof tier === 'string'
    ? { policy, key, tier }
    : { policy, key, limit: tier };
}

function resolve<T>(value: PerRequest<T> | undefined, context: ExecutionContext): T | undefined {
  return typeof value === 'function' ? (value as (context: ExecutionContext) => T)(context) : value;
}

function listOf(chosen: ReturnType<PolicyChoice>): PolicyUse[] {
  if (chosen === undefined || chosen === null) return [];
  const list = Array.isArray(chosen) ? chosen : [chosen];
  return list.map((use: unknown) =>
    typeof use === 'object' && use !== null ? (use as PolicyUse) : { policy: use as string },
  );
}

/** Each is silenced: of those that reject, none may end the process. */
function holdPromises(uses: readonly PolicyUse[]): boolean {
  let isAny = false;
  for (const use of uses) {
    const parts = isStrayPromise(use) ? undefined : Object.values(use);
    if (parts === undefined || parts.filter(isStrayPromise).length > 0) isAny = true;
  }
  return isAny;
}

function isSame(one: AcquireRequest, other: AcquireRequest): boolean {
  return one.policy === undefined || other.policy === undefined
    ? one.app !== undefined && one.app === other.app
    : one.policy === other.policy && one.key === other.key;
}
