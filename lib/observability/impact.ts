import { quotaWeight } from '../algorithms/quota/quota-limits.js';
import { weightedShares } from '../algorithms/quota/weighted-share.js';
import { type Slot } from './rings.js';
import { type SeriesTable } from './series-table.js';

/** The limits of a document, as far as they are weighed here. */
export interface WeighedDocument {
  readonly cluster?: { readonly capacity?: number | undefined } | undefined;
  readonly apps?:
    | Readonly<
        Record<
          string,
          {
            readonly guaranteed?: number | undefined;
            readonly burst?: number | undefined;
            readonly priority?: number | undefined;
          }
        >
      >
    | undefined;
  readonly policies?: Readonly<Record<string, unknown>> | undefined;
}

/** The effect that a change of limits would have had in the last three hours. */
export interface Impact {
  /** Minutes that are known of the fleet. */
  readonly minutes: number;
  /** Those of either document, the most affected first. */
  readonly apps: readonly AppImpact[];
  /** Policies that the change adds, removes or alters. */
  readonly policies: readonly PolicyImpact[];
}

/** Tokens per second. */
export interface AppImpact {
  readonly app: string;
  /** Of the busiest minute, and on the average: what was asked for. */
  readonly peakDemand: number;
  readonly demand: number;
  /** Denied on the average, with the limits of either document. */
  readonly deniedBefore: number;
  readonly deniedAfter: number;
  /** Minutes in which anything would be denied. */
  readonly minutesBefore: number;
  readonly minutesAfter: number;
}

/** Keys are not kept, so nobody can say who would be denied: this is how much the policy is used. */
export interface PolicyImpact {
  readonly policy: string;
  readonly change: 'added' | 'removed' | 'altered';
  /** Requests per second, of the busiest second and on the average. */
  readonly peak: number;
  readonly rate: number;
  /** The part of them that was denied. */
  readonly denied: number;
}

/** Less than this is what rounding leaves. */
const LEAST_DENIED = 0.5;

/**
 * Replays the last minutes: what each app asked for in a minute goes through the shares that the cluster would give it, by
 * the limits before and after. Pure.
 */
export function impactOf(
  before: WeighedDocument,
  after: WeighedDocument,
  table: SeriesTable,
  nowMicros: number,
): Impact {
  const names = new Set([...Object.keys(before.apps ?? {}), ...Object.keys(after.apps ?? {})]);
  const known = table.total.minutes.last(nowMicros);
  const apps = [...names].map((app) => ({
    app,
    demands: (table.find('app', app)?.minutes.last(nowMicros) ?? []).map(demandOf),
  }));
  const results = apps.map(({ app }) => ({ app, before: noDenials(), after: noDenials() }));
  const minutes = known.filter((slot) => slot !== undefined).length;
  for (const minute of known.keys()) {
    if (known[minute] === undefined) continue;
    const demands = apps.map((one) => one.demands[minute] ?? 0);
    for (const [side, document] of [
      ['before', before],
      ['after', after],
    ] as const) {
      const denied = deniedBy(document, [...names], demands);
      denied.forEach((tokens, index) => {
        results[index]![side].sum += tokens;
        if (tokens >= LEAST_DENIED) results[index]![side].minutes++;
      });
    }
  }
  const perMinute = (sum: number): number => (minutes === 0 ? 0 : sum / minutes);
  return {
    minutes,
    apps: results
      .map((one, index) => {
        const { demands } = apps[index]!;
        return {
          app: one.app,
          peakDemand: Math.max(0, ...demands),
          demand: perMinute(demands.reduce((sum, demand) => sum + demand, 0)),
          deniedBefore: perMinute(one.before.sum),
          deniedAfter: perMinute(one.after.sum),
          minutesBefore: one.before.minutes,
          minutesAfter: one.after.minutes,
        };
      })
      .sort((one, other) => changeOf(other) - changeOf(one) || other.demand - one.demand),
    policies: policiesOf(before, after, table, nowMicros),
  };
}

const noDenials = (): { sum: number; minutes: number } => ({ sum: 0, minutes: 0 });

const changeOf = ({ deniedBefore, deniedAfter }: AppImpact): number =>
  Math.abs(deniedAfter - deniedBefore);

/** Tokens per second that were asked for: those used, and what the denied would have cost, which is as much as the others. */
function demandOf(slot: Slot | undefined): number {
  if (slot === undefined || slot.spanMs === 0) return 0;
  const allowed = slot.count - slot.denied;
  const cost = allowed > 0 && slot.used > 0 ? slot.used / allowed : 1;
  return ((slot.used + slot.denied * cost) * 1000) / slot.spanMs;
}

function deniedBy(
  { cluster, apps = {} }: WeighedDocument,
  names: readonly string[],
  demands: readonly number[],
): number[] {
  const claims = names.map((name, index) => {
    const app = apps[name];
    const guaranteed = app?.guaranteed ?? 0;
    return {
      ...{ demand: demands[index]!, guaranteed, burst: app?.burst ?? guaranteed },
      weight: quotaWeight(app?.priority),
    };
  });
  const shares = weightedShares(claims, cluster?.capacity ?? Infinity);
  return demands.map((demand, index) => Math.max(0, demand - shares[index]!));
}

function policiesOf(
  { policies: before = {} }: WeighedDocument,
  { policies: after = {} }: WeighedDocument,
  table: SeriesTable,
  nowMicros: number,
): PolicyImpact[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((policy) => {
    const [was, is] = [before[policy], after[policy]];
    if (JSON.stringify(was) === JSON.stringify(is)) return [];
    const change = was === undefined ? 'added' : is === undefined ? 'removed' : 'altered';
    const span = table.find('policy', policy)?.minutes.sum(nowMicros, Infinity, -1);
    const seconds = (span?.spanMs ?? 0) / 1000;
    return [
      {
        ...{ policy, change, peak: span?.peak ?? 0 },
        rate: seconds > 0 ? span!.count / seconds : 0,
        denied: span !== undefined && span.count > 0 ? span.denied / span.count : 0,
      },
    ];
  });
}
