import { type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';

/** Called for each request that is denied, in the request's own async context. */
export type DenialListener = (decision: Decision, context: ExecutionContext) => void;

/** While nobody takes times: so many requests until the next look whether somebody does. */
const UNTIMED = 2 ** 30;

/** The requests of one transport that had to pass a guard, each once, however many guards it met. */
export class RequestCounts {
  requests = 0;
  /** Turned away; and handed over to `@Degrade`, for another answer. */
  denied = 0;
  handedOver = 0;
  /** Called for each denial; nearly always empty. */
  readonly onDenied: DenialListener[] = [];
  private untilTimed = UNTIMED;
  private takeTime: () => number = () => 0;

  /** Counts a request that is new; the instant of it, in microseconds, if its time is taken, else 0. */
  begin(): number {
    this.requests++;
    return --this.untilTimed > 0 ? 0 : this.startedNow();
  }

  /** From now on the time of every n-th request is taken, by that clock. 0: of none. */
  timeEvery(every: number, clock: () => number): void {
    const next = every === 0 ? UNTIMED : every;
    this.takeTime = (): number => {
      this.untilTimed = next;
      return every === 0 ? 0 : clock();
    };
    this.untilTimed = Math.min(this.untilTimed, next);
  }

  private startedNow(): number {
    this.untilTimed = UNTIMED;
    return this.takeTime();
  }
}
