import { type DecisionSource } from './decision.js';

/** Decisions so far, by where they were made. */
export interface SourceCounters {
  readonly allowed: number;
  readonly denied: number;
  /** Would have been denied, but the policy only watches. */
  readonly shadowDenied: number;
}

/** Decisions so far, under all tiers of a policy. */
export interface PolicyCounters extends SourceCounters {
  /** Decided without the store because it could not answer. */
  readonly fallback: number;
  /** The same decisions by source. */
  readonly bySource: Readonly<Record<DecisionSource, SourceCounters>>;
  /** Allowed, and less than a fifth of the tokens was left. */
  readonly scarce: number;
  /** Brought figures along that there was no room for, and were decided under the default tier. */
  readonly defaulted: number;
  /** Requests whose key had to share a bucket of this process. */
  readonly overflowed: number;
  readonly leased: number;
  readonly leaseCalls: number;
  /** Denied by their tier and let pass by `passThrough`, by tier; they count as allowed. */
  readonly passedOver: Readonly<Record<string, number>>;
  /** Passed uncounted: `hot`, and the value was not in demand. */
  readonly cold: number;
  /** Requests under `key: 'user'` without a user, which the policy's `anonymous` key was taken for. */
  readonly anonymous: number;
}

/**
 * The counts of a policy, in plain fields: a decision adds one to one of nine, and whoever wants sums makes
 * them. A library's counter costs as much as several decisions, measured; so nothing is told to any.
 */
export class LimitCounters {
  allowedLocal = 0;
  allowedStore = 0;
  allowedFallback = 0;
  deniedLocal = 0;
  deniedStore = 0;
  deniedFallback = 0;
  shadowLocal = 0;
  shadowStore = 0;
  shadowFallback = 0;
  scarce = 0;
  defaulted = 0;
  /** The overflows of limits that are gone; those of present limits come on top. */
  overflowed = 0;
  leased = 0;
  leaseCalls = 0;
  cold = 0;
  anonymous = 0;
  /** Undefined before the first. */
  passedOver: Map<string, number> | undefined = undefined;

  /** A request that its tier denied has asked the excess as well, with or without success: it counts once. */
  askedTwice(source: DecisionSource, passedTier?: string): void {
    if (source === 'local') this.deniedLocal--;
    else if (source === 'store') this.deniedStore--;
    else this.deniedFallback--;
    if (passedTier === undefined) return;
    this.passedOver ??= new Map();
    this.passedOver.set(passedTier, (this.passedOver.get(passedTier) ?? 0) + 1);
  }

  allow(source: DecisionSource): void {
    if (source === 'local') this.allowedLocal++;
    else if (source === 'store') this.allowedStore++;
    else this.allowedFallback++;
  }

  deny(source: DecisionSource): void {
    if (source === 'local') this.deniedLocal++;
    else if (source === 'store') this.deniedStore++;
    else this.deniedFallback++;
  }

  watch(source: DecisionSource): void {
    if (source === 'local') this.shadowLocal++;
    else if (source === 'store') this.shadowStore++;
    else this.shadowFallback++;
  }
}

/** The counters as callers see them. */
export function countersOf(cells: LimitCounters): Mutable<PolicyCounters> {
  const { scarce, defaulted, overflowed, leased, leaseCalls, cold, anonymous } = cells;
  const local = counted(cells.allowedLocal, cells.deniedLocal, cells.shadowLocal);
  const store = counted(cells.allowedStore, cells.deniedStore, cells.shadowStore);
  const fallback = counted(cells.allowedFallback, cells.deniedFallback, cells.shadowFallback);
  return {
    allowed: local.allowed + store.allowed + fallback.allowed,
    denied: local.denied + store.denied + fallback.denied,
    shadowDenied: local.shadowDenied + store.shadowDenied + fallback.shadowDenied,
    fallback: fallback.allowed + fallback.denied + fallback.shadowDenied,
    bySource: { local, store, fallback },
    ...{ scarce, defaulted, overflowed, leased, leaseCalls, cold, anonymous },
    passedOver: Object.fromEntries(cells.passedOver ?? []),
  };
}

type Mutable<T> = { -readonly [Name in keyof T]: T[Name] };

function counted(allowed: number, denied: number, shadowDenied: number): SourceCounters {
  return { allowed, denied, shadowDenied };
}
