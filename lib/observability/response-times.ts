import { type ExecutionContext } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { LogLinear } from '../common/histogram.js';
import { chargeOf } from '../limits/charges.js';
import { type RequestCounts } from '../requests/request-counts.js';
import { subjectOf } from '../requests/subject.js';
import { type DecisionWriter, type FinishedAnswer } from '../requests/transport.js';

/** Above this many requests a second one in eight stands for all. */
const BUSY = 1000;
const SAMPLE = 8;
const FIRST_ERROR = 500;

/**
 * How long the answers of guarded HTTP routes take, from the first guard to the last byte handed over, and how
 * many of them are errors. Denials have no part in it, nor do streams of events, which end when their viewer leaves.
 * Only requests whose time is taken pay for it: Node's channels of requests and answers would be paid for by all
 * requests to the process, guarded or not.
 */
export class ResponseTimes {
  readonly times = new LogLinear();
  errors = 0;
  private every = 1;
  private requestsBefore = 0;
  private readonly onTimed = (context: ExecutionContext): void => this.begin(context);

  constructor(
    private readonly counts: RequestCounts,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly writerOf: (context: ExecutionContext) => Pick<DecisionWriter, 'whenFinished'>,
  ) {}

  start(): void {
    this.requestsBefore = this.counts.requests;
    this.sample(1);
  }

  stop(): void {
    this.counts.timeNone();
  }

  /** A second has passed. */
  tick(): void {
    const every = this.isBusy ? SAMPLE : 1;
    this.requestsBefore = this.counts.requests;
    if (every !== this.every) this.sample(every);
  }

  private get isBusy(): boolean {
    return this.counts.requests - this.requestsBefore >= BUSY;
  }

  private sample(every: number): void {
    this.every = every;
    this.counts.timeEvery(every, this.onTimed);
  }

  private begin(context: ExecutionContext): void {
    const startedAt = this.clock.now();
    const { every } = this;
    // At once: a second of a busy server is long.
    if (every !== SAMPLE && this.isBusy) this.sample(SAMPLE);
    const finished = ({ status, isEventStream }: FinishedAnswer): void => {
      const isAllowed = chargeOf(subjectOf(context))?.decision?.allowed === true;
      if (!isAllowed || isEventStream) return;
      this.times.record(this.clock.now() - startedAt, every);
      if (status >= FIRST_ERROR) this.errors += every;
    };
    this.writerOf(context).whenFinished?.(context, finished);
  }
}
