import { type Clock } from '../../common/clock.js';
import { inBudget, NOTHING, SingleFlight } from '../../common/single-flight.js';
import { RetryPause } from '../../common/retry-pause.js';
import { type Envelope, type SharedCache } from '../../stores/shared-cache.js';

/** Counts of the reads of the shared cache, by their result. */
export interface SharedLevelStats {
  /** Reads that were not begun because enough were under way. */
  readonly busy: number;
  /** …because the cache has not been answering. */
  readonly skipped: number;
  /** The cache failed, or took longer than there was time. */
  readonly failed: number;
  /** Reads that joined one of the same key. */
  readonly joined: number;
}

/** How level 1 is read: one read per key at a time, few in all, and none while there is no answer. */
export class SharedLevel {
  private readonly flights = new SingleFlight<Envelope | undefined>();
  private readonly breaker = new ReadBreaker();
  private readonly counts = { busy: 0, skipped: 0, failed: 0, joined: 0 };

  constructor(
    readonly cache: SharedCache,
    private readonly clock: Clock,
  ) {}

  /** True while reads would be in vain. */
  get isAway(): boolean {
    return this.breaker.isOpen(this.clock.now());
  }

  /** The entry of the key, within the budget; a failure is a miss. */
  async read(
    key: string,
    budgetMs: number,
    timeoutMs: number,
    maxReads: number,
  ): Promise<Envelope | undefined> {
    let flight = this.flights.join(key);
    if (flight === undefined) flight = this.begin(key, timeoutMs, maxReads);
    else this.counts.joined++;
    if (flight === undefined) return undefined;
    const found = await inBudget(flight, budgetMs, this.clock);
    return found === NOTHING ? undefined : found;
  }

  stats(): SharedLevelStats {
    return { ...this.counts };
  }

  private begin(
    key: string,
    timeoutMs: number,
    maxReads: number,
  ): Promise<Envelope | undefined> | undefined {
    // Reads that no request waits for any more still occupy the cache.
    if (Math.max(this.flights.size, this.cache.reading) >= maxReads) {
      this.counts.busy++;
      return undefined;
    }
    const begunAt = this.clock.now();
    if (!this.breaker.allows(begunAt)) {
      this.counts.skipped++;
      return undefined;
    }
    return this.flights.begin(key, this.ask(key, timeoutMs, begunAt));
  }

  private async ask(
    key: string,
    timeoutMs: number,
    begunAt: number,
  ): Promise<Envelope | undefined> {
    try {
      const found = await this.cache.get(key, timeoutMs);
      this.breaker.succeeded();
      return found;
    } catch {
      this.counts.failed++;
      this.breaker.failed(begunAt, this.clock.now());
      return undefined;
    }
  }
}

const FIRST_PAUSE_MICROS = 1_000_000;
const LONGEST_PAUSE_MICROS = 10_000_000;

/**
 * Leaves a cache alone that does not answer. After a pause one read may try; if it has no
 * result, the next one may after another pause. So no read that was lost can keep it shut.
 */
export class ReadBreaker {
  private readonly pause = new RetryPause(FIRST_PAUSE_MICROS, LONGEST_PAUSE_MICROS);
  private triesAt = -Infinity;

  isOpen(now: number): boolean {
    return this.pause.isDue && now < this.triesAt;
  }

  /** Whether a read may begin. While open, a true is the one try of this pause. */
  allows(now: number): boolean {
    if (!this.pause.isDue) return true;
    if (now < this.triesAt) return false;
    this.triesAt = now + this.pause.length;
    return true;
  }

  succeeded(): void {
    this.pause.succeeded();
  }

  failed(begunAt: number, now: number): void {
    if (this.pause.failed(now, begunAt)) this.triesAt = now + this.pause.begin();
  }
}
