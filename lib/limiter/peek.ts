import { Outcome } from '../algorithms/algorithm.js';
import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import { type BucketTable } from '../stores/memory/bucket-table.js';
import { CallKind, type RemoteStore } from '../stores/remote-store.js';
import { type Decision, type DecisionSource } from './decision.js';
import { ask } from './question.js';
import { type BoundCheck } from './remembered-denial.js';

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();

/** What a take would be told, with the tokens that it would take still there. */
export function peekAt(
  check: BoundCheck,
  remote: RemoteStore | undefined,
  clock: Clock,
): Decision | Promise<Decision> {
  const { shared, key, cost } = check;
  if (shared.table !== undefined || remote === undefined) {
    return peekHere(check, shared.table!, clock, 'local');
  }
  return ask(remote, CallKind.Peek, [check]).then((answers) => {
    const inHand = shared.leases?.tokensOf(key, clock.now()) ?? 0;
    if (answers === undefined) {
      if (inHand >= cost) return peekInHand(check, inHand, clock);
      return peekHere(check, shared.fallbackTable(remote.nodes), clock, 'fallback');
    }
    const outcome = { ...answers[0]! };
    if (outcome.allowed) outcome.level += cost * shared.limit.perToken;
    outcome.level = Math.min(shared.limit.full, outcome.level + inHand * shared.limit.perToken);
    if (inHand >= cost) Object.assign(outcome, { allowed: true, waitMicros: 0 });
    return shared.describe(shared.limit, outcome, EPOCH_CLOCK, 'store');
  });
}

function peekHere(
  { shared, key, cost }: BoundCheck,
  table: BucketTable,
  clock: Clock,
  source: DecisionSource,
): Decision {
  OUTCOME.nowMicros = clock.now();
  table.peek(key, cost, OUTCOME);
  if (OUTCOME.allowed) OUTCOME.level += cost * table.limit.perToken;
  return shared.describe(table.limit, OUTCOME, clock, source);
}

/** While the store is away: what is here is certain, and the rest unknown. */
function peekInHand({ shared }: BoundCheck, tokens: number, clock: Clock): Decision {
  OUTCOME.nowMicros = clock.now();
  OUTCOME.allowed = true;
  OUTCOME.level = tokens * shared.limit.perToken;
  OUTCOME.waitMicros = 0;
  return shared.describe(shared.limit, OUTCOME, clock, 'local');
}
