import { deepFreeze, isImmutable, remembered } from '../../common/immutable.js';
import { type PolicyFields } from '../../limiter/policy-options.js';
import { limitPart } from '../../limits/route-policy.js';
import { type LocalOptions, type QuotaOptions } from '../../limiter/quota-options.js';
import { type ConfigDocument, type PolicyDocument } from './document.schema.js';

/** The part of a document that a limiter needs. */
export interface Limits {
  readonly policies: Readonly<Record<string, PolicyFields>>;
  /** Only where there are apps. */
  readonly quota?: QuotaOptions;
}

/**
 * The limits of an effective document, in the form in which the limiter takes them. A policy that is
 * the same object in two documents has the same limits, so that the limiter keeps what it has.
 */
export function limitsOf(document: ConfigDocument): Limits {
  const policies = policyLimits(document.policies ?? NO_POLICIES);
  const quota = quotaOf(document);
  return quota === undefined ? { policies } : { policies, quota };
}

type Policies = NonNullable<ConfigDocument['policies']>;

const NO_POLICIES: Policies = deepFreeze({});

const policyLimits = remembered((policies: Policies): Limits['policies'] => {
  const limits: Record<string, PolicyFields> = {};
  for (const name of Object.keys(policies)) limits[name] = limitOf(policies[name]!);
  return isImmutable(policies) ? deepFreeze(limits) : limits;
});

const limitOf = remembered((policy: PolicyDocument): PolicyFields => {
  const limit = limitPart(policy);
  return isImmutable(policy) ? deepFreeze(limit) : limit;
});

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
  // The apps that a process serves, and the nodes that it assumes at first, are its own affair.
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
