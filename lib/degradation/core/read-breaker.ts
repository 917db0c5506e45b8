const FAILURES_TO_OPEN = 3;
const FIRST_PAUSE_MICROS = 1_000_000;
const LONGEST_PAUSE_MICROS = 10_000_000;

/**
 * Leaves a cache alone that does not answer. After a pause one read may try; if nothing is heard of
 * it, the next one may after another pause. So no read that was lost can keep it shut.
 */
export class ReadBreaker {
  private failures = 0;
  private countedAt = -Infinity;
  private pauseMicros = FIRST_PAUSE_MICROS;
  private triesAt = -Infinity;

  isOpen(now: number): boolean {
    return this.failures >= FAILURES_TO_OPEN && now < this.triesAt;
  }

  /** Whether a read may begin. While open, a true is the one try of this pause. */
  allows(now: number): boolean {
    if (this.failures < FAILURES_TO_OPEN) return true;
    if (now < this.triesAt) return false;
    this.triesAt = now + this.pauseMicros;
    return true;
  }

  succeeded(): void {
    this.failures = 0;
    this.pauseMicros = FIRST_PAUSE_MICROS;
  }

  /** Of reads that were under way together only the first counts: one hiccup, one mark. */
  failed(begunAt: number, now: number): void {
    if (begunAt < this.countedAt) return;
    this.countedAt = now;
    if (++this.failures < FAILURES_TO_OPEN) return;
    this.triesAt = now + this.pauseMicros;
    this.pauseMicros = Math.min(this.pauseMicros * 2, LONGEST_PAUSE_MICROS);
  }
}
