import { Outcome } from '../algorithms/algorithm.js';
import { type Clock } from '../common/clock.js';
import { type RemoteAnswer, type RemoteCheck } from '../stores/remote-store.js';
import { type BoundLimit } from './bound-limit.js';
import { type Decision } from './decision.js';

/** One request, with its policy looked up and its arguments checked. */
export interface BoundCheck extends RemoteCheck {
  readonly limit: BoundLimit;
}

/**
 * Another process may reset or refund the key, or the store may lose it, and nobody would tell this
 * one. So the store is asked again after a second, which a flood of any size makes one call.
 */
const LONGEST_MEMORY_MICROS = 1_000_000;

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();

/** The denial that a check runs into again, if that is known here. */
export function knownDenial(check: BoundCheck, clock: Clock): Decision | undefined {
  const { limit, key, cost } = check;
  const now = clock.now();
  const denial = limit.denials.find(key, cost, now);
  if (denial === undefined) return undefined;
  const waitMicros = limit.waitAfter(denial, cost, now);
  if (waitMicros === undefined) return undefined;
  OUTCOME.nowMicros = now;
  OUTCOME.level = denial.level;
  OUTCOME.waitMicros = waitMicros;
  return limit.describe(limit.figures, OUTCOME, clock, 'local');
}

/**
 * Remembers what the store has denied, unless tokens came back since the call was made. Counted
 * from when the answer came, which is later than when it was given: never too early.
 */
export function rememberDenial(
  check: BoundCheck,
  generation: number,
  answer: RemoteAnswer,
  clock: Clock,
): void {
  const { limit, key, cost } = check;
  if (limit.denials.generationOf(key) !== generation) return;
  const now = clock.now();
  const untilMicros = now + Math.min(answer.waitMicros, LONGEST_MEMORY_MICROS);
  const dueMicros = now + answer.waitMicros;
  limit.denials.remember(key, { untilMicros, dueMicros, cost, level: answer.level });
}
