import { type Clock } from '../common/clock.js';
import { Debt, type RemoteStore } from '../stores/remote-store.js';
import { type BoundCheck } from './remembered-denial.js';

/** The store answers for a key: it hears what passed without it. */
export function payOwed(check: BoundCheck, store: RemoteStore, clock: Clock): void {
  const { key } = check;
  const limit = check.limit.latest();
  // Every answer of the store comes by here, and next to none finds anything owed.
  if (limit.owed === undefined || limit.owed.isEmpty) return;
  const sinceMicros = clock.now();
  const cost = limit.takeOwed(key, sinceMicros);
  if (cost > 0) store.submit(new OwedDebt({ limit, key, cost }, sinceMicros));
}

/** A debt that stays one if it gets lost on its way. */
class OwedDebt extends Debt {
  constructor(
    private readonly check: BoundCheck,
    private readonly sinceMicros: number,
  ) {
    super([check]);
  }

  unanswered(): void {
    const { limit, key, cost } = this.check;
    limit.latest().owe(key, cost, this.sinceMicros);
  }
}
