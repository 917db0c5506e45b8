import { deepFreeze, isImmutable, remembered } from '../../common/immutable.js';
import { type PolicyInput } from '../../limiter/policy-options.js';
import { type LocalOptions, type QuotaOptions } from '../../limiter/quota-options.js';
import { type ConfigDocument, type PolicyDocument } from './document.schema.js';

/** What a limiter has to know of a document. */
export interface Limits {
  readonly policies: Readonly<Record<string, PolicyInput>>;
  /** Only where there are apps. */
  readonly quota?: QuotaOptions;
}

/**
 * The limits of an effective document, in the form in which the limiter takes them. What is the same
 * as in a known document is the same in its limits.
 */
export function limitsOf(document: ConfigDocument, known?: ConfigDocument): Limits {
  const policies = policyLimits(document.policies ?? NO_POLICIES, known?.policies ?? NO_POLICIES);
  const quota = quotaOf(document);
  return quota === undefined ? { policies } : { policies, quota };
}

type Policies = NonNullable<ConfigDocument['policies']>;

const NO_POLICIES: Policies = deepFreeze({});

const limitsOfPolicies = new WeakMap<Policies, Limits['policies']>();

function policyLimits(policies: Policies, known: Policies): Limits['policies'] {
  const found = limitsOfPolicies.get(policies);
  if (found !== undefined) return found;
  const before = limitsOfPolicies.get(known);
  const limits: Record<string, PolicyInput> = {};
  for (const name of Object.keys(policies)) {
    const policy = policies[name]!;
    limits[name] = (policy === known[name] && before?.[name]) || limitOf(policy);
  }
  if (isImmutable(policies)) limitsOfPolicies.set(policies, deepFreeze(limits));
  return limits;
}

/** Without what only requests have to do with. */
function limitOf(policy: PolicyDocument): PolicyInput {
  const { key: _key, anonymous: _anonymous, tier: _tier, early: _early, ...limit } = policy;
  return limit;
}

type Apps = NonNullable<ConfigDocument['apps']>;

function quotaOf({ cluster, apps }: ConfigDocument): QuotaOptions | undefined {
  if (apps === undefined && cluster?.capacity === undefined) return undefined;
  return quotaWith(apps ?? {}, cluster);
}

const quotaWith = remembered((apps: Apps, cluster: ConfigDocument['cluster']): QuotaOptions => {
  const { id, capacity, burstRatio, reservedRatio, maxCost, ...local } = cluster ?? {};
  const figures = present({ capacity, burstRatio, reservedRatio });
  const quota = present({
    cluster: Object.keys(figures).length === 0 ? undefined : figures,
    clusterId: id,
    apps,
    maxCost,
    local: Object.keys(local).length === 0 ? undefined : (local as Partial<LocalOptions>),
  }) as unknown as QuotaOptions;
  return isImmutable(apps) ? deepFreeze(quota) : quota;
});

function present<T extends object>(value: T): Partial<T> {
  return Object.fromEntries(
    Object.entries(value).filter(([, one]) => one !== undefined),
  ) as Partial<T>;
}

/** The code's own limits as a document: what a document cannot carry, such as functions, is left out. */
export function documentOf(code: {
  readonly policies?: Readonly<Record<string, object>>;
  readonly quota?: QuotaOptions;
}): ConfigDocument {
  const { policies = {}, quota } = code;
  const named: ConfigDocument['policies'] = {};
  for (const [name, one] of Object.entries(policies)) named[name] = withoutFunctions(one);
  const { cluster, clusterId, apps, maxCost, local } = quota ?? {};
  // What a process serves is its own affair, and what it assumes before it has heard of the others.
  const { apps: _served, nodes: _nodes, ...ofAll } = local ?? {};
  const clusterPart = present({ id: clusterId, ...cluster, maxCost, ...ofAll });
  return present({
    cluster: Object.keys(clusterPart).length === 0 ? undefined : clusterPart,
    apps,
    policies: Object.keys(named).length === 0 ? undefined : named,
  });
}

/** A key that is or holds a function cannot travel, nor can half of it. */
function withoutFunctions(policy: object): object {
  return Object.fromEntries(Object.entries(policy).filter(([, one]) => !holdsFunction(one)));
}

function holdsFunction(value: unknown): boolean {
  return typeof value === 'function' || (Array.isArray(value) && value.some(holdsFunction));
}
