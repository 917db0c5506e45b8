import { type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { CallDeadlines } from './call-deadlines.js';
import { type DegradeOptions } from './degrade-options.js';

/** How long a handler is waited for; undefined where it is waited for as long as it takes. */
export interface CallPatience {
  readonly isRead: boolean;
  /** Until the levels are tried. */
  readonly slow: CallDeadlines | undefined;
  /** From then on until it is given up. */
  readonly rest: CallDeadlines | undefined;
  /** After which a request has its answer, if it may have another than the handler's. */
  readonly deadlineMs: number;
}

export interface RoutePatience {
  readonly reads: CallPatience;
  readonly writes: CallPatience;
}

/** What holds for routes that say nothing else. */
export interface UsualPatience {
  readonly deadlineMs: number;
  readonly slowMs: number;
}

/** The lines in which calls wait: one for all that may take equally long. */
export class PatienceLines {
  private readonly lines = new Map<number, CallDeadlines>();

  constructor(private readonly clock: Clock) {}

  /** To cut a write short tells nobody whether it was done, so it has to be asked for. */
  of(at: string, { slow, deadline }: DegradeOptions, usual: UsualPatience): RoutePatience {
    const ownDeadlineMs = deadline && durationMs(deadline, `${at}.deadline`);
    const deadlineMs = ownDeadlineMs || usual.deadlineMs;
    const slowMs = slow ? durationMs(slow, `${at}.slow`) : Math.min(usual.slowMs, deadlineMs / 2);
    if (slowMs >= deadlineMs) {
      throw new InvalidArgumentError(
        `${at}.slow`,
        slow,
        `less than the deadline, ${deadlineMs} ms`,
      );
    }
    const rest = this.line(deadlineMs - slowMs);
    const slowWrite = ownDeadlineMs ? this.line(ownDeadlineMs) : undefined;
    return {
      reads: { isRead: true, slow: this.line(slowMs), rest, deadlineMs },
      writes: { isRead: false, slow: slowWrite, rest: undefined, deadlineMs },
    };
  }

  /** Forgets lines in which nobody will wait any more. */
  keep(used: Iterable<RoutePatience>): void {
    const kept = new Set<CallDeadlines | undefined>();
    for (const { reads, writes } of used) kept.add(reads.slow).add(reads.rest).add(writes.slow);
    for (const [patienceMs, line] of this.lines) {
      if (!kept.has(line) && line.isEmpty) this.lines.delete(patienceMs);
    }
  }

  close(): void {
    for (const line of this.lines.values()) line.close();
  }

  private line(patienceMs: number): CallDeadlines {
    let line = this.lines.get(patienceMs);
    if (line === undefined) {
      this.lines.set(patienceMs, (line = new CallDeadlines(patienceMs, this.clock)));
    }
    return line;
  }
}
