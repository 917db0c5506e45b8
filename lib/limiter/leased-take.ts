import { Outcome } from '../algorithms/algorithm.js';
import { type Clock } from '../common/clock.js';
import { type BoundLimit } from './bound-limit.js';
import { type Decision } from './decision.js';
import { type BoundCheck } from './remembered-denial.js';

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();

/** The decision, if this process holds enough tokens of the key to make it. */
export function takeLeased(
  limit: BoundLimit,
  key: string,
  cost: number,
  clock: Clock,
): Decision | undefined {
  const { leases } = limit;
  if (leases === undefined || leases.size === 0) return undefined;
  OUTCOME.nowMicros = clock.now();
  if (!leases.take(key, cost, OUTCOME)) return undefined;
  leases.decided++;
  return limit.decide(limit.figures, OUTCOME, clock, 'local');
}

/** What the store denied may have been taken by this very process, ahead, a moment before. */
export function takeLeasedAfterAll(check: BoundCheck, clock: Clock): Decision | undefined {
  const { limit, key, cost } = check;
  const { leases } = limit;
  if (leases === undefined || leases.size === 0) return undefined;
  OUTCOME.nowMicros = clock.now();
  if (!leases.takeAfterAll(key, cost, OUTCOME)) return undefined;
  leases.decided++;
  return limit.decide(limit.figures, OUTCOME, clock, 'local');
}
