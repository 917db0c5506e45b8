import {
  createRateLimiter,
  type ConsumptionReport,
  type QuotaOptions,
  type RateLimiter,
  type RateLimiterEvents,
} from 'nestjs-weir';
import { now } from '../support/limiters.js';
import { ManualClock } from '../support/manual-clock.js';

describe('what a limiter tells about its quotas', () => {
  const made: RateLimiter[] = [];

  function stand(quota: QuotaOptions): { clock: ManualClock; limiter: RateLimiter } {
    const clock = new ManualClock();
    const limiter = createRateLimiter({ quota, clock, nodeId: 'nginx-01' });
    made.push(limiter);
    return { clock, limiter };
  }

  afterAll(() => Promise.all(made.map((limiter) => limiter.close())));

  it('A-63, A-64, BUG-A44: a request of 800 with 200 held, and the answer', () => {
    const { clock, limiter } = stand({
      cluster: { capacity: 1_000_000 },
      apps: { video: { guaranteed: 20_000, burst: 80_000, priority: 0 } },
      local: { reserveTarget: 1000 },
    });
    const leases: RateLimiterEvents['lease'][] = [];
    now(limiter.tryAcquire({ app: 'video' }));
    limiter.on('lease', (lease) => leases.push(lease));
    for (let i = 0; i < 800; i++) now(limiter.tryAcquire({ app: 'video' }));
    const timestampMs = clock.epochMs(clock.now());
    expect(leases).toEqual([
      {
        request: {
          type: 'token_request',
          app: 'video',
          node: 'nginx-01',
          requested: 800,
          currentLocal: 200,
          timestampMs,
        },
        response: {
          type: 'token_response',
          app: 'video',
          granted: 800,
          remaining: expect.any(Number) as number,
          nextRefillMs: expect.any(Number) as number,
        },
      },
    ]);
  });

  it('BUG-A49: instants are told in whole milliseconds, whatever the clock says', () => {
    const { clock, limiter } = stand({ apps: { video: { guaranteed: 20_000, burst: 80_000 } } });
    const told: unknown[] = [];
    limiter.on('lease', (lease) => told.push(lease));
    limiter.on('consumption', (report) => told.push(report));
    for (let i = 0; i < 3000; i++) {
      now(limiter.tryAcquire({ app: 'video', method: 'GET' }));
      clock.advanceMicros(777);
    }
    const fractions: string[] = [];
    JSON.stringify(told, (name, value: unknown) => {
      if (typeof value === 'number' && !Number.isInteger(value))
        fractions.push(`${name}: ${value}`);
      return value;
    });
    expect(told.length).toBeGreaterThan(10);
    expect(fractions).toEqual([]);
  });

  it('A-65: consumption by method, once a second', () => {
    const { clock, limiter } = stand({ apps: { video: { guaranteed: 20_000, burst: 80_000 } } });
    const reports: ConsumptionReport[] = [];
    limiter.on('consumption', (report) => reports.push(report));
    for (let tick = 0; tick < 80; tick++) {
      for (let n = 0; n < 8; n++) now(limiter.tryAcquire({ app: 'video', cost: 1, method: 'GET' }));
      for (let n = 0; n < 4; n++) now(limiter.tryAcquire({ app: 'video', cost: 1, method: 'PUT' }));
      now(limiter.tryAcquire({ app: 'video' }));
      clock.advance(50);
    }
    const [, report] = reports;
    expect(report).toMatchObject({ type: 'consumption_report', app: 'video', node: 'nginx-01' });
    const { byMethod, totalCost, requestCount, periodStartMs, periodEndMs } = report!;
    const ticks = Math.round((periodEndMs - periodStartMs) / 50);
    expect(ticks).toBeGreaterThanOrEqual(20);
    expect(byMethod.GET!.count / byMethod.PUT!.count).toBeCloseTo(2, 1);
    expect(totalCost).toBe(requestCount);
    expect(requestCount - byMethod.GET!.count - byMethod.PUT!.count).toBeGreaterThan(0);
    // Periods follow one another without a gap.
    expect(report!.periodStartMs).toBe(reports[0]!.periodEndMs);
  });

  it('overload and quota_adjust: what an app may have while all want more, and afterwards', () => {
    const { clock, limiter } = stand({
      cluster: { capacity: 1000 },
      apps: {
        first: { guaranteed: 300, burst: 2000, priority: 0 },
        last: { guaranteed: 300, burst: 2000, priority: 3 },
      },
    });
    const told: unknown[] = [];
    const latest = new Map<string, number>();
    limiter.on('overload', (event) => told.push(event));
    limiter.on('quota_adjust', ({ app, perSecond, overloaded }) => {
      told.push('quota_adjust');
      latest.set(app, perSecond);
      if (!overloaded) expect(perSecond).toBe(2000);
    });
    const run = (ms: number, perTick: number): void => {
      for (let at = 0; at < ms; at += 10) {
        for (const app of ['first', 'last']) {
          for (let n = 0; n < perTick; n++) now(limiter.tryAcquire({ app }));
        }
        clock.advance(10);
      }
    };
    run(3000, 20);
    expect(told[0]).toEqual({ type: 'overload', overloaded: true });
    // Guarantees 300 each; the 400 that are left go 8 : 1, and no more than is asked for.
    expect(latest.get('first')).toBeGreaterThan(600);
    expect(latest.get('last')).toBeLessThan(360);
    expect(latest.get('first')! + latest.get('last')!).toBeLessThanOrEqual(1000);
    run(5000, 1);
    expect(told).toContainEqual({ type: 'overload', overloaded: false });
    expect([...latest.values()]).toEqual([2000, 2000]);
  });
});
