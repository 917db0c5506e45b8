import { InvalidArgumentError } from '../../common/errors.js';
import { TimeWindow } from '../../common/outcome-window.js';

const WINDOW_SECONDS = 10;
/** So that a client of few requests may send some of them again. */
const FREE_PER_SECOND = 1;

/**
 * How many requests may be sent again: a part of those of the last 10 s, and one a second. Retries of
 * everything multiply the load of a service that is in trouble, just when it can least bear it.
 *
 * One budget for all requests to the same service: `retryAfter({ budget })`.
 */
export class RetryBudget {
  private readonly window = new TimeWindow(WINDOW_SECONDS * 1_000_000);
  /** Retries that were not made. */
  exhausted = 0;

  /** `part` of the requests, from 0 to 1. */
  constructor(readonly part = 0.1) {
    if (typeof part === 'number' && part >= 0 && part <= 1) return;
    throw new InvalidArgumentError('budget', part, 'a part from 0 to 1, or a RetryBudget');
  }

  /** A request is sent for the first time. */
  request(nowMs: number): void {
    this.window.record(nowMs * 1000, false, false);
  }

  /** Takes a retry out of the budget; false if there is none left. */
  tryRetry(nowMs: number): boolean {
    const { window, part } = this;
    window.age(nowMs * 1000);
    const isCovered = window.failures < part * window.calls + FREE_PER_SECOND * WINDOW_SECONDS;
    if (isCovered) window.fail(nowMs * 1000);
    else this.exhausted++;
    return isCovered;
  }
}
