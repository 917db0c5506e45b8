import { channel } from 'node:diagnostics_channel';
import { type IncomingMessage } from 'node:http';
import { keepCharge, NOTHING_CHARGED } from '../../lib/limits/charges.js';
import { type Decision } from '../../lib/limiter/decision.js';
import { ResponseTimes } from '../../lib/observability/response-times.js';
import { RequestCounts } from '../../lib/requests/request-counts.js';
import { httpSubjectOf } from '../../lib/requests/subject.js';
import { ManualClock } from '../support/manual-clock.js';

interface Answer {
  readonly status?: number;
  readonly type?: string;
  readonly allowed?: boolean;
  readonly server?: object;
  readonly ms?: number;
}

describe('times of responses', () => {
  const server = {};
  let clock: ManualClock;
  let counts: RequestCounts;
  let responses: ResponseTimes;

  beforeEach(() => {
    clock = new ManualClock(1000);
    counts = new RequestCounts();
    responses = new ResponseTimes(counts, clock, () => server);
    responses.start();
  });
  afterEach(() => responses.stop());

  /** A request that a guard has met, and that is answered after so long. */
  function answer({ status = 200, type, allowed = true, ms = 10, ...more }: Answer = {}): void {
    const request = {} as IncomingMessage;
    const decision = { allowed } as Decision;
    keepCharge(httpSubjectOf(request), {
      ...NOTHING_CHARGED,
      decision,
      startedAt: counts.begin(),
    });
    clock.advance(ms);
    const response = { statusCode: status, getHeader: () => type };
    channel('http.server.response.finish').publish({ request, response, server, ...more });
  }
  const figures = (): [count: number, errors: number] => [responses.times.count, responses.errors];

  it('are those of what was allowed, and errors of the handler', () => {
    answer();
    answer({ status: 404 });
    answer({ status: 500, ms: 40 });
    expect(figures()).toEqual([3, 1]);
    expect(responses.times.quantile(0.99)).toBeGreaterThan(39_000);
  });

  it('have no part of denials, streams of events, other servers, and requests that no guard met', () => {
    answer({ allowed: false, status: 503 });
    answer({ type: 'text/event-stream; charset=utf-8', ms: 60_000 });
    answer({ server: {} });
    const response = { statusCode: 500, getHeader: () => undefined };
    channel('http.server.response.finish').publish({ request: {}, response, server });
    expect(figures()).toEqual([0, 0]);
  });

  it('are of one in eight above a thousand a second, which stands for all, and of all again below', () => {
    for (let i = 0; i < 1000; i++) answer({ ms: 0 });
    responses.tick();
    for (let i = 0; i < 8000; i++) answer({ ms: 0, status: i % 16 < 8 ? 200 : 500 });
    expect(responses.times.count).toBe(9000);
    responses.tick();
    responses.tick();
    const [before] = figures();
    for (let i = 0; i < 100; i++) answer({ ms: 0 });
    // The one that was due by the rule before is the first.
    expect(responses.times.count - before).toBeGreaterThanOrEqual(100 - 8);
    expect(responses.times.count - before).toBeLessThanOrEqual(100);
  });

  it('are no longer taken when nobody wants them', () => {
    responses.stop();
    answer();
    expect(figures()).toEqual([0, 0]);
    responses.start();
  });
});
