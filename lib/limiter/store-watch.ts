import { type Clock } from '../common/clock.js';
import { StoreUnavailableError } from '../common/errors.js';
import { type LimiterEvents } from './events.js';

/** Calls by which a process finds out how its store is. */
type Asker = 'policies' | 'quota';

/**
 * Tells of the store once per switch, whoever finds out first. It is back when it answers all who had
 * missed it.
 */
export class StoreWatch {
  private readonly missing = new Set<Asker>();
  private downSince = 0;

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly events: LimiterEvents,
  ) {}

  lost(by: Asker, error: unknown): void {
    const isFirst = this.missing.size === 0;
    this.missing.add(by);
    if (!isFirst) return;
    this.downSince = this.clock.now();
    this.events.emit('store', { state: 'down', reason: asUnavailable(error) });
  }

  found(by: Asker): void {
    if (!this.missing.delete(by) || this.missing.size > 0) return;
    const downMs = (this.clock.now() - this.downSince) / 1000;
    this.events.emit('store', { state: 'up', downMs });
  }
}

function asUnavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new StoreUnavailableError(reason, { cause: error });
}
