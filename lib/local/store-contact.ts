import { StoreTimeoutError } from '../common/errors.js';

const FAILURES_TO_OFFLINE = 3;
const FIRST_PROBE_MICROS = 100_000;
export const LONGEST_PROBE_MICROS = 2_000_000;

/** Whether the store can be reached; and if not, how long until it is looked for again. */
export class StoreContact {
  isOffline = false;
  private failures = 0;
  private probeMicros = FIRST_PROBE_MICROS;

  answered(): void {
    this.failures = 0;
    this.probeMicros = FIRST_PROBE_MICROS;
    this.isOffline = false;
  }

  /** True if that is reason enough to do without the store. */
  failed(error: unknown): boolean {
    const isCertain = !(error instanceof StoreTimeoutError);
    if (!isCertain && ++this.failures < FAILURES_TO_OFFLINE) return false;
    this.isOffline = true;
    return true;
  }

  hint(): void {
    this.probeMicros = FIRST_PROBE_MICROS;
  }

  /** The time until the next probe: twice the last one, up to a bound. */
  nextProbe(): number {
    const { probeMicros } = this;
    this.probeMicros = Math.min(probeMicros * 2, LONGEST_PROBE_MICROS);
    return probeMicros;
  }
}
