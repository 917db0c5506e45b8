import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type Clock } from '../common/clock.js';
import { LogLinear } from '../common/histogram.js';
import { chargeOf } from '../limits/charges.js';
import { type RequestCounts } from '../requests/request-counts.js';
import { httpSubjectOf } from '../requests/subject.js';

/**
 * Node tells of each answer of every server in the process. The channel of a request's start would cost up to
 * 14 % of a bare server, measured; so the guard notes the start, and this is the end.
 */
const FINISHED = 'http.server.response.finish';
/** Above this many requests a second one in eight stands for all. */
const BUSY = 1000;
const SAMPLE = 8;
const FIRST_ERROR = 500;

interface Finished {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly server: unknown;
}

/**
 * How long the answers of guarded HTTP routes take, from the first guard to the last byte handed over, and how
 * many of them are errors. Denials have no part in it, nor do streams of events, which end when their viewer leaves.
 */
export class ResponseTimes {
  readonly times = new LogLinear();
  errors = 0;
  private every = 1;
  private requestsBefore = 0;
  private readonly onFinish = (message: unknown): void => this.finished(message as Finished);

  constructor(
    private readonly counts: RequestCounts,
    private readonly clock: Pick<Clock, 'now'>,
    /** The application's own server: another one in the same process has its own monitor. */
    private readonly server: () => unknown,
  ) {}

  start(): void {
    this.requestsBefore = this.counts.requests;
    this.sample(1);
    subscribe(FINISHED, this.onFinish);
  }

  stop(): void {
    this.sample(0);
    unsubscribe(FINISHED, this.onFinish);
  }

  /** A second has passed. */
  tick(): void {
    const { requests } = this.counts;
    const every = requests - this.requestsBefore >= BUSY ? SAMPLE : 1;
    this.requestsBefore = requests;
    if (every !== this.every) this.sample(every);
  }

  private sample(every: number): void {
    this.every = every;
    this.counts.timeEvery(every, () => this.clock.now());
  }

  private finished({ request, response, server }: Finished): void {
    const charge = chargeOf(httpSubjectOf(request));
    if (charge === undefined || charge.startedAt === 0 || server !== this.server()) return;
    if (charge.decision?.allowed !== true || isEventStream(response)) return;
    this.times.record(this.clock.now() - charge.startedAt, this.every);
    if (response.statusCode >= FIRST_ERROR) this.errors += this.every;
  }
}

function isEventStream(response: ServerResponse): boolean {
  const type = response.getHeader('content-type');
  return typeof type === 'string' && type.startsWith('text/event-stream');
}
