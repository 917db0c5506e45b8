import { type BoundCheck, type BoundLimit } from './bound-limit.js';
import { decisive, type Decision } from './decision.js';

/** The tier and the key of the bucket that a policy's excess takes from; no caller can name either. */
export const EXCESS = '(excess)';

/** The excess of one tier so far, and the part of it that could pass. */
interface TierExcess {
  readonly part: number;
  requests: number;
  candidates: number;
}

/** Makes up for floating point, where a product such as 0.7 × 10 may be a little less than it is. */
const ROUNDING = 1e-9;

/**
 * The part of a policy's excess that may pass, out of a bucket of its own. Of any n requests in a row that a
 * tier denies, part × n are candidates, rounded down or up: nothing is drawn by chance. So in any span the policy
 * admits what its tiers admit, and what the bucket does.
 */
export class Excess {
  private readonly tiers: ReadonlyMap<string, TierExcess>;

  constructor(
    readonly limit: BoundLimit,
    parts: ReadonlyMap<string, number>,
    before?: Excess,
  ) {
    this.tiers = new Map(
      [...parts].map(([tier, part]) => {
        const old = before?.tiers.get(tier);
        return [tier, old?.part === part ? old : { part, requests: 0, candidates: 0 }];
      }),
    );
  }

  /** Counts a request that its tier has denied. The check to make instead, if it is a candidate. */
  checkFor({ limit, cost }: BoundCheck): BoundCheck | undefined {
    const tier = this.tiers.get(limit.tier);
    if (tier === undefined) return undefined;
    tier.requests++;
    const due = Math.floor(tier.requests * tier.part + ROUNDING);
    if (due <= tier.candidates) return undefined;
    tier.candidates++;
    return this.instead(cost);
  }

  instead(cost: number): BoundCheck {
    return { limit: this.limit, key: EXCESS, cost };
  }
}

/** A request that is decided twice counts as one, by what became of it in the end. */
export function countOnce(
  { checks }: { readonly checks: readonly BoundCheck[] },
  denials: readonly Decision[],
  taken: Decision,
): void {
  for (const denial of denials) {
    const { limit } = checks.find((check) => check.limit.policy === denial.policy)!;
    if (taken.allowed) limit.counters.askedTwice(denial.source, limit.tier);
    else {
      const again = (taken.decisions ?? [taken]).find(
        ({ allowed, policy }) => !allowed && policy === denial.policy,
      );
      if (again !== undefined) limit.counters.askedTwice(again.source);
    }
  }
}

/** The decision of a request that its tier has denied, and the excess has let pass. */
export function passedAsExcess(denied: Decision, taken: Decision): Decision {
  if (denied.decisions === undefined) return asPassed(denied);
  const denials = denied.decisions.filter(({ allowed }) => !allowed);
  const parts = (taken.decisions ?? [taken]).map((part) => {
    const denial = denials.find(({ policy, tier }) => policy === part.policy && tier === part.tier);
    return denial === undefined ? part : asPassed(denial);
  });
  return decisive(parts);
}

/** The figures stay those of the denial: the tokens of its own tier are used up all the same. */
function asPassed(denied: Decision): Decision {
  return { ...denied, allowed: true, retryAfterMs: 0, isPassedOver: true };
}
