import { type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../limiter/decision.js';

/** Called for each request that is denied, in the request's own async context. */
export type DenialListener = (decision: Decision, context: ExecutionContext) => void;

/** Called for a request whose time is taken, when its first guard has decided. */
export type TimedRequest = (context: ExecutionContext) => void;

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
  private timedEvery = UNTIMED;
  private onTimed: TimedRequest | undefined = undefined;

  /** Counts a request that is new. */
  begin(context: ExecutionContext): void {
    this.requests++;
    if (--this.untilTimed <= 0) this.time(context);
  }

  /** From now on the time of every n-th request is taken. */
  timeEvery(every: number, onTimed: TimedRequest): void {
    this.timedEvery = every;
    this.onTimed = onTimed;
    this.untilTimed = Math.min(this.untilTimed, every);
  }

  /** From now on the time of none is. */
  timeNone(): void {
    this.timedEvery = UNTIMED;
    this.untilTimed = UNTIMED;
    this.onTimed = undefined;
  }

  private time(context: ExecutionContext): void {
    this.untilTimed = this.timedEvery;
    this.onTimed?.(context);
  }
}
