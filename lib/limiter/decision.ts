/**
 * The part of the limiter that decided. `local`: tokens of a quota held here (always allowed), or a message of
 * `limitStream` that found no room (denied). `node`: the line of this process.
 */
export type DecidingTier = 'policy' | 'app' | 'cluster' | 'local' | 'node';

/** Decided in process, by the shared store, or without it because it could not answer. */
export type DecisionSource = 'local' | 'store' | 'fallback';

/** The answer to one request, with everything that a response or a log needs. */
export interface Decision {
  readonly allowed: boolean;
  /** Whole tokens left after this decision; of a quota, as of the latest reply of the store. */
  readonly remaining: number;
  /** Tokens that the bucket or window holds in all. */
  readonly limit: number;
  /** Allowed by a shaper: how long to hold the request back before it goes. Else 0. */
  readonly delayMs: number;
  /** Denied: after how long the same request would be allowed. Rounded up, so never too early. */
  readonly retryAfterMs: number;
  /** Time until all tokens are back if nothing more is taken. */
  readonly resetMs: number;
  /** The instant for which the tokens were counted, on the clock that counted them; to the microsecond. */
  readonly timestampMs: number;
  /** The policy that decided. */
  readonly policy: string;
  readonly tier: DecidingTier;
  readonly source: DecisionSource;
  /** Only of figures that came with the request: how long an empty bucket takes to fill. */
  readonly windowMs?: number;
  /** Only of a policy with `hot`: the value is not in demand, so the request passed and took nothing. */
  readonly cold?: true;
  /** Only of a request that its limit has denied, and `passThrough` or `shadow` has let pass. */
  readonly isPassedOver?: true;
  /** Only of a request to several policies: the decisions that this one was made of. */
  readonly decisions?: readonly Decision[];
}

/** Of policies that all had to pass: the one that denied for longest, else the tightest. */
export function decisive(decisions: readonly Decision[]): Decision {
  let chosen = decisions[0]!;
  let { delayMs } = chosen;
  for (let index = 1; index < decisions.length; index++) {
    const one = decisions[index]!;
    if (isTighter(one, chosen)) chosen = one;
    if (one.delayMs > delayMs) delayMs = one.delayMs;
  }
  const { allowed, remaining, limit, retryAfterMs, resetMs } = chosen;
  const { timestampMs, policy, tier, source } = chosen;
  // With the list in it from the start: V8 allocates anew for a field that is added.
  const made: DecisionCopy = {
    allowed,
    remaining,
    limit,
    delayMs,
    retryAfterMs,
    resetMs,
    timestampMs,
    policy,
    tier,
    source,
    decisions,
  };
  return withRest(made, chosen);
}

export type DecisionCopy = { -readonly [Name in keyof Decision]: Decision[Name] };

/** A copy to add fields to. Made field by field: to spread it costs a microsecond, measured, and this some tens of nanoseconds. */
export function copyOf(decision: Decision): DecisionCopy {
  const { allowed, remaining, limit, delayMs, retryAfterMs, resetMs } = decision;
  const { timestampMs, policy, tier, source } = decision;
  const copy: DecisionCopy = {
    allowed,
    remaining,
    limit,
    delayMs,
    retryAfterMs,
    resetMs,
    timestampMs,
    policy,
    tier,
    source,
  };
  return withRest(copy, decision);
}

/** Adds the fields that few decisions have. */
function withRest(copy: DecisionCopy, { windowMs, cold, isPassedOver }: Decision): DecisionCopy {
  if (windowMs !== undefined) copy.windowMs = windowMs;
  if (cold !== undefined) copy.cold = cold;
  if (isPassedOver !== undefined) copy.isPassedOver = isPassedOver;
  return copy;
}

/** The first of two unless the second leaves less. */
export function tighter(first: Decision, second: Decision): Decision {
  return isTighter(second, first) ? second : first;
}

function isTighter(a: Decision, b: Decision): boolean {
  if (a.allowed !== b.allowed) return !a.allowed;
  if (!a.allowed) return a.retryAfterMs > b.retryAfterMs;
  return a.remaining * b.limit < b.remaining * a.limit;
}
