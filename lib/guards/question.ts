import { type ExecutionContext } from '@nestjs/common';
import { type AcquireRequest, type PolicyRequest } from '../limiter/rate-limiter.js';
import { type PerRequest } from './key-options.js';
import { ANONYMOUS, NO_KEY, textOf } from './key-resolver.js';
import { type PolicyCatalog } from './policy-catalog.js';
import { type RequestReader } from './request-reader.js';
import { type PolicyChoice, type PolicyUse } from './route-metadata.js';
import { type RoutePlan } from './route-plan.js';
import { type AppliedPolicy } from './route-policy.js';

/** Told of what is odd about keys; the limit holds all the same. */
export interface KeyWarnings {
  /** There is no key, or reading it failed: such requests share one bucket. */
  missing(policy: string, cause: unknown): void;
  /** Somebody has credentials, but no name yet. */
  beforeAuthentication(policy: string): void;
}

/** Puts a request and the plan of its route into the words of the limiter. */
export class Questions {
  constructor(
    private readonly catalog: PolicyCatalog,
    private readonly app: PerRequest<string> | undefined,
    private readonly warnings: KeyWarnings,
  ) {}

  /** The question of a route with one plain policy. */
  single(policy: AppliedPolicy, plan: RoutePlan, context: ExecutionContext, reader: RequestReader) {
    const key = this.keyOf(policy, plan, context, reader);
    return { policy: policy.name, key, tier: resolve(policy.tier, context) };
  }

  /** Everything that the plan asks for, less what was asked already. */
  all(
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
    asked: ReadonlySet<string> | undefined,
  ): AcquireRequest[] {
    const requests: AcquireRequest[] = [];
    for (const policy of plan.policies) {
      // A promise is no answer: an async function would otherwise skip everything.
      if (asked?.has(policy.name) || policy.skipIf?.(context) === true) continue;
      const cost = resolve(plan.cost, context) ?? policy.cost?.(context);
      if (cost === 0) continue;
      requests.push({ ...this.single(policy, plan, context, reader), cost });
    }
    for (const choice of plan.choices) {
      for (const use of listOf(choice(context))) {
        const request = this.chosen(use, plan, context, reader);
        const isAsked = asked?.has(request.policy) || requests.some(isOf(request.policy));
        if (!isAsked && request.cost !== 0) requests.push(request);
      }
    }
    if (plan.usesQuota) this.addQuota(plan, context, reader, asked, requests);
    return requests;
  }

  /** Whether the application can say by now who is calling. */
  knowsCaller(context: ExecutionContext, reader: RequestReader): boolean {
    return this.catalog.callerOf(context, reader) !== undefined;
  }

  private chosen(
    { policy: name, key, tier, cost }: PolicyUse,
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
  ): PolicyRequest {
    const policy = this.catalog.get(name, `the choice of ${plan.id}`);
    return {
      policy: name,
      key: key === undefined ? this.keyOf(policy, plan, context, reader) : this.given(name, key),
      tier: tier ?? resolve(policy.tier, context),
      cost: cost ?? resolve(plan.cost, context) ?? policy.cost?.(context),
    };
  }

  private addQuota(
    plan: RoutePlan,
    context: ExecutionContext,
    reader: RequestReader,
    asked: ReadonlySet<string> | undefined,
    requests: AcquireRequest[],
  ): void {
    const app = resolve(this.app, context)!;
    const cost = resolve(plan.cost, context);
    if (asked?.has(`quota:${app}`) || cost === 0) return;
    requests.push({ app, cost, method: reader.methodOf(context) });
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
      if (policy.needsUser && key?.includes(ANONYMOUS)) this.lookForUser(policy, context, reader);
      if (key !== undefined) return key;
    } catch (error) {
      cause = error;
    }
    return this.noKey(policy.name, cause);
  }

  /** A choice is a function of the application, and may say what its type does not allow. */
  private given(policy: string, key: unknown): string {
    return textOf(key) ?? this.noKey(policy, undefined);
  }

  private noKey(policy: string, cause: unknown): string {
    this.warnings.missing(policy, cause);
    return NO_KEY;
  }

  private lookForUser(
    { name }: AppliedPolicy,
    context: ExecutionContext,
    reader: RequestReader,
  ): void {
    if (reader.headerOf(context, 'authorization') === undefined) return;
    this.warnings.beforeAuthentication(name);
  }
}

function resolve<T>(value: PerRequest<T> | undefined, context: ExecutionContext): T | undefined {
  return typeof value === 'function' ? (value as (context: ExecutionContext) => T)(context) : value;
}

function listOf(chosen: ReturnType<PolicyChoice>): PolicyUse[] {
  if (chosen === undefined || chosen === null) return [];
  const list = Array.isArray(chosen) ? chosen : [chosen];
  return list.map((use: string | PolicyUse) => (typeof use === 'string' ? { policy: use } : use));
}

function isOf(policy: string): (request: AcquireRequest) => boolean {
  return (request) => request.policy === policy;
}
