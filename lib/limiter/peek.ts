import { Outcome } from '../algorithms/algorithm.js';
import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import { type BucketTable } from '../stores/memory/bucket-table.js';
import { CallKind, type RemoteStore } from '../stores/remote-store.js';
import { type Decision, type DecisionSource } from './decision.js';
import { callStore } from './question.js';
import { type BoundCheck } from './remembered-denial.js';

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();

/** What a take would be told, with the tokens that it would take still there. */
export function peekAt(
  check: BoundCheck,
  remote: RemoteStore | undefined,
  clock: Clock,
): Decision | Promise<Decision> {
  const { limit, key, cost } = check;
  if (limit.table !== undefined || remote === undefined) {
    return peekHere(check, limit.table!, clock, 'local');
  }
  return callStore(remote, CallKind.Peek, [check]).then((answers) => {
    const inHand = limit.leases?.tokensOf(key, clock.now()) ?? 0;
    if (answers === undefined) {
      if (inHand >= cost) return peekInHand(check, inHand, clock);
      return peekHere(check, limit.fallbackTable(remote.nodes), clock, 'fallback');
    }
    const outcome = { ...answers[0]! };
    if (outcome.allowed) outcome.level += cost * limit.figures.perToken;
    outcome.level = Math.min(limit.figures.full, outcome.level + inHand * limit.figures.perToken);
    if (inHand >= cost) Object.assign(outcome, { allowed: true, waitMicros: 0 });
    return limit.describe(limit.figures, outcome, EPOCH_CLOCK, 'store');
  });
}

function peekHere(
  { limit, key, cost }: BoundCheck,
  table: BucketTable,
  clock: Clock,
  source: DecisionSource,
): Decision {
  OUTCOME.nowMicros = clock.now();
  table.peek(key, cost, OUTCOME);
  if (OUTCOME.allowed) OUTCOME.level += cost * table.limit.perToken;
  return limit.describe(table.limit, OUTCOME, clock, source);
}

/** While the store is away: what is here is certain, and the rest unknown. */
function peekInHand({ limit }: BoundCheck, tokens: number, clock: Clock): Decision {
  OUTCOME.nowMicros = clock.now();
  OUTCOME.allowed = true;
  OUTCOME.level = tokens * limit.figures.perToken;
  OUTCOME.waitMicros = 0;
  return limit.describe(limit.figures, OUTCOME, clock, 'local');
}
