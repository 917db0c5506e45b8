import { type PolicyInput } from '../../../limiter/policy-options.js';
import { type QuotaOptions } from '../../../limiter/quota-options.js';

export interface PolicyPlan {
  readonly name: string;
  readonly kind: 'exact' | 'leased' | 'auto' | 'policer' | 'window' | 'rare';
  /** Tokens per period, and how many a bucket holds. */
  readonly rate: number;
  readonly burst: number;
  readonly periodMs: number;
  readonly failureMode: 'local' | 'closed';
}

export interface AppPlan {
  readonly name: string;
  readonly guaranteed: number;
  readonly burst: number;
  readonly priority: 0 | 1 | 2 | 3;
}

export interface PlannedQuota {
  readonly capacity: number;
  /** The least cost of a request: where it is high, the burst is short for the capacity. */
  readonly unit: number;
  readonly apps: readonly AppPlan[];
}

/** A fleet and its limits. */
export interface HistoryPlan {
  readonly processes: number;
  readonly decisionTimeoutMs: number;
  readonly policies: readonly PolicyPlan[];
  readonly quota: PlannedQuota | undefined;
  readonly maxCost: number;
  /** Whether limits change now and then. */
  readonly changes: boolean;
}

const KINDS: readonly PolicyPlan['kind'][] = [
  'exact',
  'leased',
  'auto',
  'policer',
  'window',
  'rare',
];
const SUB_WINDOWS = 10;
const LARGE_UNIT = 10;
const LISTED_RATES = 60;
/** Costly requests take DEAR_PART of the quota's bucket, which holds BURST_PART of its capacity. */
const DEAR_PART = 0.8;
const BURST_PART = 0.2;
const DEAR_BURST = 10;
/** A limit that takes hours to recover: only a reset helps. */
const RARE = { rate: 6, burst: 6, periodMs: 3_600_000 };

export function drawPlan(random: () => number): HistoryPlan {
  const pick = (choices: number): number => Math.floor(random() * choices);
  const processes = 1 + pick(4);
  const decisionTimeoutMs = [20, 20, 50, 100, 300][pick(5)]!;
  const hasQuota = random() < 0.45;
  const count = hasQuota ? pick(2) : 1 + pick(2);
  const policies = Array.from({ length: count }, (_, index) => {
    return drawPolicy(index, hasQuota || count > 1 ? 60 : 120, random);
  });
  const maxCost = 1 + pick(3);
  const quota = hasQuota ? drawQuota(random) : undefined;
  return { processes, decisionTimeoutMs, policies, quota, maxCost, changes: random() < 0.15 };
}

function drawPolicy(index: number, rates: number, random: () => number): PolicyPlan {
  const pick = (choices: number): number => Math.floor(random() * choices);
  const kind = KINDS[pick(KINDS.length)]!;
  const rate = 20 + pick(rates);
  const burst = 5 + pick(random() < 0.5 ? 10 : 30);
  const figures = kind === 'rare' ? RARE : { rate, burst, periodMs: 1000 };
  const failureMode = random() < 0.3 ? ('closed' as const) : ('local' as const);
  return { name: `p${index}`, kind, failureMode, ...figures };
}

/** Two or three policies, so that they can be asked for together. */
export function withMorePolicies(plan: HistoryPlan, random: () => number): HistoryPlan {
  const count = 2 + Math.floor(random() * 2);
  const policies = Array.from({ length: count }, (_, index) => {
    return plan.policies[index] ?? drawPolicy(index, LISTED_RATES, random);
  });
  return { ...plan, policies };
}

/** One app that asks for more than there is, so that nothing but the cluster is in its way. */
export function drawScarcePlan(random: () => number): HistoryPlan {
  const pick = (choices: number): number => Math.floor(random() * choices);
  const capacity = (100 + pick(100)) * LARGE_UNIT;
  // Much may pass by share, or next to nothing: what is asked for is refused then.
  const guaranteed = Math.floor(capacity * (random() < 0.5 ? 0.85 : 0.05));
  const app = { name: 'a0', guaranteed, burst: 3 * capacity, priority: 0 as const };
  return {
    processes: 1 + pick(4),
    decisionTimeoutMs: [20, 50, 100][pick(3)]!,
    policies: [],
    quota: { capacity, unit: LARGE_UNIT, apps: [app] },
    maxCost: 1 + pick(3),
    changes: false,
  };
}

/** The same with requests that cost most of the bucket, of an app that has next to nothing by share. */
export function drawDearPlan(random: () => number): HistoryPlan {
  const { quota, ...plan } = drawScarcePlan(random);
  const capacity = quota!.capacity;
  const app = { ...quota!.apps[0]!, guaranteed: Math.floor(capacity * 0.05) };
  const most = Math.floor((DEAR_PART * BURST_PART * capacity) / LARGE_UNIT);
  const processes = Math.max(2, plan.processes);
  return { ...plan, processes, maxCost: most, quota: { ...quota!, apps: [app] } };
}

/** One policy that goes by shares while the store is away, and one that is reset. */
export function drawCountedPlan(random: () => number): HistoryPlan {
  const pick = (choices: number): number => Math.floor(random() * choices);
  const figures = { rate: 30 + pick(70), burst: 8 + pick(16), periodMs: 1000 };
  const kind = (['exact', 'auto', 'leased'] as const)[pick(3)]!;
  const failureMode = 'local' as const;
  return {
    processes: 2 + pick(3),
    decisionTimeoutMs: [20, 50, 100][pick(3)]!,
    policies: [
      { name: 'p0', kind, failureMode, ...figures },
      { name: 'p1', kind: 'rare', failureMode, ...RARE },
    ],
    quota: undefined,
    maxCost: 1,
    changes: false,
  };
}

/** Requests that cost a good part of the smallest bucket. */
export function withDearRequests(plan: HistoryPlan): HistoryPlan {
  const policies = plan.policies.map((policy) => {
    return policy.kind === 'rare' ? policy : { ...policy, burst: policy.burst + DEAR_BURST };
  });
  const isRare = policies.some(({ kind }) => kind === 'rare');
  return { ...plan, policies, maxCost: isRare ? RARE.burst / 2 : DEAR_BURST };
}

function drawQuota(random: () => number): PlannedQuota {
  const drawn = 60 + Math.floor(random() * 140);
  const unit = drawn % 2 === 0 ? LARGE_UNIT : 1;
  const capacity = drawn * unit;
  const count = 1 + Math.floor(random() * 2);
  const apps = Array.from({ length: count }, (_, index): AppPlan => {
    const guaranteed = Math.floor((capacity * (0.3 + 0.5 * random())) / count);
    const burst = Math.floor(guaranteed * (1 + random()));
    return { name: `a${index}`, guaranteed, burst, priority: Math.floor(random() * 4) as 0 };
  });
  return { capacity, unit, apps };
}

/** A plan as a process is configured with it; `factors` are those of changed limits. */
export function policiesOf(
  plan: HistoryPlan,
  factors: readonly number[],
): Record<string, PolicyInput> {
  return Object.fromEntries(
    plan.policies.map((policy, index) => [policy.name, inputOf(policy, factors[index] ?? 1)]),
  );
}

function inputOf(policy: PolicyPlan, factor: number): PolicyInput {
  const { kind, failureMode } = policy;
  const { rate, burst } = scaled(policy, factor);
  const period = `${policy.periodMs}ms` as const;
  switch (kind) {
    case 'window':
      return { algorithm: 'sliding-window', rate, period, subWindows: SUB_WINDOWS, failureMode };
    case 'policer':
      return { algorithm: 'leaky-bucket', rate, period, burst, failureMode };
    case 'rare':
      return { rate, period, burst, sync: 'exact', failureMode };
    default:
      return { rate, period, burst, sync: kind, failureMode };
  }
}

export function scaled(
  { rate, burst, kind }: PolicyPlan,
  factor: number,
): { rate: number; burst: number } {
  if (kind === 'rare') return { rate, burst };
  return {
    rate: Math.max(1, Math.round(rate * factor)),
    burst: Math.max(4, Math.round(burst * factor)),
  };
}

/** The most that a request of a quota costs. */
export function quotaCost({ quota, maxCost }: HistoryPlan): number {
  return maxCost * (quota?.unit ?? 1);
}

export function quotaOf(plan: HistoryPlan, factor: number): QuotaOptions | undefined {
  const { quota } = plan;
  if (quota === undefined) return undefined;
  const maxCost = quotaCost(plan);
  const apps = quota.apps.map(({ name, guaranteed, burst, priority }) => {
    const scaledTo = (figure: number): number => Math.max(maxCost, Math.floor(figure * factor));
    return [name, { guaranteed: scaledTo(guaranteed), burst: scaledTo(burst), priority }] as const;
  });
  const capacity = Math.ceil(quota.capacity * factor);
  const local = { nodes: plan.processes };
  return { cluster: { capacity }, apps: Object.fromEntries(apps), maxCost, local };
}
