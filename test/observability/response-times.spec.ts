import { type ExecutionContext } from '@nestjs/common';
import { keepCharge, NOTHING_CHARGED } from '../../lib/limits/charges.js';
import { type Decision } from '../../lib/limiter/decision.js';
import { ResponseTimes } from '../../lib/observability/response-times.js';
import { RequestCounts } from '../../lib/requests/request-counts.js';
import { subjectOf } from '../../lib/requests/subject.js';
import { type FinishedAnswer } from '../../lib/requests/transport.js';
import { ManualClock } from '../support/manual-clock.js';

interface Answer {
  readonly status?: number;
  readonly isEventStream?: boolean;
  readonly allowed?: boolean;
  readonly ms?: number;
}

describe('times of responses', () => {
  let clock: ManualClock;
  let counts: RequestCounts;
  let responses: ResponseTimes;
  /** Those whose time is being taken. */
  let timed: ((answer: FinishedAnswer) => void)[];
  let timedInAll: number;

  beforeEach(() => {
    clock = new ManualClock(1000);
    counts = new RequestCounts();
    timed = [];
    timedInAll = 0;
    responses = new ResponseTimes(counts, clock, () => ({
      whenFinished: (_, callback) => {
        timed.push(callback);
        timedInAll++;
      },
    }));
    responses.start();
  });
  afterEach(() => responses.stop());

  /** A request that a guard has met, and that is answered after so long. */
  function answer(one: Answer = {}): void {
    const { status = 200, isEventStream = false, allowed = true, ms = 10 } = one;
    const args = [{ rawHeaders: [] }, {}];
    const host: Partial<ExecutionContext> = {
      getArgs: () => args as never,
      getType: () => 'http' as never,
    };
    const context = host as ExecutionContext;
    counts.begin(context);
    keepCharge(subjectOf(context), { ...NOTHING_CHARGED, decision: { allowed } as Decision });
    clock.advance(ms);
    timed.pop()?.({ status, isEventStream });
  }
  const figures = (): [count: number, errors: number] => [responses.times.count, responses.errors];

  it('are those of what was allowed, and errors of the handler', () => {
    answer();
    answer({ status: 404 });
    answer({ status: 500, ms: 40 });
    expect(figures()).toEqual([3, 1]);
    expect(responses.times.quantile(0.99)).toBeGreaterThan(39_000);
  });

  it('have no part of denials and streams of events', () => {
    answer({ allowed: false, status: 503 });
    answer({ isEventStream: true, ms: 60_000 });
    expect(figures()).toEqual([0, 0]);
  });

  it('are of one in eight above a thousand a second, which stands for all, and of all again below', () => {
    for (let i = 0; i < 1000; i++) answer({ ms: 0 });
    responses.tick();
    for (let i = 0; i < 8000; i++) answer({ ms: 0, status: i % 16 < 8 ? 200 : 500 });
    expect(responses.times.count).toBe(9000);
    expect(timedInAll).toBe(2000);
    responses.tick();
    responses.tick();
    const [before] = figures();
    for (let i = 0; i < 100; i++) answer({ ms: 0 });
    // The one that was due by the rule before is the first.
    expect(responses.times.count - before).toBeGreaterThanOrEqual(100 - 8);
    expect(responses.times.count - before).toBeLessThanOrEqual(100);
  });

  it('are of one in eight from the thousandth of a second on', () => {
    for (let i = 0; i < 9000; i++) answer({ ms: 0 });
    expect(responses.times.count).toBe(9000);
    expect(timedInAll).toBe(2000);
  });

  it('are no longer taken when nobody wants them', () => {
    responses.stop();
    answer();
    expect(figures()).toEqual([0, 0]);
    responses.start();
  });
});
