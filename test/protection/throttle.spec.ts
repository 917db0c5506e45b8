import { Metadata } from '@grpc/grpc-js';
import fc from 'fast-check';
import { type ResourceOptions, type ThrottleOptions } from 'nestjs-weir';
import { settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

const REFUSED = { statusCode: 503, retryAfterMs: 700 };

class Throttled extends Bench {
  constructor(throttle: Partial<ThrottleOptions> = {}, more: ResourceOptions = {}) {
    super({ throttle, ...more });
  }

  /** One call that the other side accepts or refuses; 'held back' if it was not made. */
  async once(error?: unknown): Promise<'accepted' | 'refused' | 'held back'> {
    let wasMade = false;
    try {
      await this.protection.run('db', () => {
        wasMade = true;
        if (error !== undefined) throw error as Error;
        return 'ok';
      });
      return 'accepted';
    } catch {
      return wasMade ? 'refused' : 'held back';
    }
  }

  async many(count: number, error?: unknown): Promise<Record<string, number>> {
    const counts: Record<string, number> = { accepted: 0, refused: 0, 'held back': 0 };
    for (let i = 0; i < count; i++) counts[await this.once(error)]!++;
    return counts;
  }
}

describe('a throttle', () => {
  it('holds nothing back while at least every other call is accepted', async () => {
    const bench = new Throttled();
    for (let i = 0; i < 100; i++) {
      await bench.once();
      await bench.once(REFUSED);
    }
    expect(bench.stats.throttled).toBe(0);
    expect(bench.stats.throttle).toEqual({ requests: 200, refused: 100, part: 0 });
  });

  it('holds back more and more of what is only refused, and never all of it', async () => {
    const bench = new Throttled();
    expect(await bench.many(20, REFUSED)).toMatchObject({ refused: 20 });
    const counts = await bench.many(1000, REFUSED);
    // Nine of ten, at most, and nearly that at once.
    expect(counts['held back']).toBeGreaterThan(880);
    expect(counts['held back']).toBeLessThanOrEqual(900);
    expect(bench.stats).toMatchObject({ throttled: counts['held back'], throttle: { part: 0.9 } });
  });

  it('does not throw dice: any run of calls loses its part, to one call', async () => {
    const bench = new Throttled({ ratio: 1, most: 0.5 });
    await bench.many(20, REFUSED);
    await bench.many(1, REFUSED);
    const ends: string[] = [];
    for (let i = 0; i < 40; i++) ends.push(await bench.once(REFUSED));
    for (let from = 0; from < ends.length; from++) {
      for (let to = from + 1; to <= ends.length; to++) {
        const held = ends.slice(from, to).filter((end) => end === 'held back').length;
        expect(Math.abs(held - (to - from) / 2)).toBeLessThanOrEqual(1);
      }
    }
  });

  it('concludes nothing from fewer than minimumCalls', async () => {
    const bench = new Throttled({ minimumCalls: 50 });
    expect(await bench.many(50, REFUSED)).toMatchObject({ refused: 50 });
    expect((await bench.many(10, REFUSED))['held back']).toBeGreaterThan(0);
  });

  it('counts calls when they are made: of a burst none is out that the first refusals would hold back', async () => {
    const bench = new Throttled();
    await bench.many(30, REFUSED);
    // All made before any of them has ended.
    const calls = Array.from({ length: 100 }, () => bench.call());
    await settle();
    expect(calls.filter(({ hasBegun }) => hasBegun).length).toBeLessThan(20);
  });

  it('takes calls on their way for accepted, however long they take', async () => {
    const bench = new Throttled();
    const calls = Array.from({ length: 500 }, () => bench.call());
    await settle();
    expect(calls.every(({ hasBegun }) => hasBegun)).toBe(true);
  });

  it('lets all pass again once the window is over', async () => {
    const bench = new Throttled();
    await bench.many(100, REFUSED);
    bench.clock.advance(11_000);
    expect(await bench.many(50)).toMatchObject({ accepted: 50 });
  });

  it('rejects with the wait that the last refusal named', async () => {
    const bench = new Throttled({ minimumCalls: 1, ratio: 1 });
    await bench.many(30, REFUSED);
    const errors: unknown[] = [];
    for (let i = 0; i < 3; i++) {
      await bench.protection.run('db', () => 'ok').catch((error: unknown) => errors.push(error));
    }
    expect(errors[0]).toMatchObject({
      code: 'PROTECTION_REJECTED',
      reason: 'throttled',
      retryAfterMs: 700,
      message: 'resource "db": refuses calls, so that this one was not made, retry in 700 ms',
    });
  });

  it('charges no token and opens no breaker for what it holds back', async () => {
    const bench = new Throttled({}, { breaker: { minimumCalls: 1000 } });
    await bench.many(200, REFUSED);
    const { throttled, breaker } = bench.stats;
    expect(breaker!.calls).toBe(200 - throttled);
  });

  it.each<[string, unknown, number]>([
    ['HTTP 429 of Nest or got', { statusCode: 429 }, 0],
    ['HTTP 503 of a fetch wrapper', { status: 503 }, 0],
    ['axios', { response: { status: 503, headers: { 'retry-after': '2' } } }, 2000],
    ['Headers', { response: { status: 429, headers: new Headers({ 'Retry-After': '3' }) } }, 3000],
    ['gRPC 8', { code: 8, metadata: pushback('250') }, 250],
    ['gRPC 14', { code: 14, metadata: new Metadata() }, 0],
    ['a message', { status: 'error', code: 'RATE_LIMITED', retryAfterMs: 40 }, 40],
    ['an overloaded service', { status: 'error', code: 'OVERLOADED', retryAfterMs: 5 }, 5],
    ['a turned away one', { status: 'error', code: 'BREAKER_OPEN', retryAfterMs: 9 }, 9],
  ])('takes %s for a refusal', async (_, error, retryAfterMs) => {
    const bench = new Throttled({ minimumCalls: 1, ratio: 1, most: 0.99 });
    await bench.once(error);
    await bench.once(error);
    const rejection = await bench.protection.run('db', () => 'ok').catch((why: unknown) => why);
    const next = await bench.protection.run('db', () => 'ok').catch((why: unknown) => why);
    expect([rejection, next]).toContainEqual(expect.objectContaining({ retryAfterMs }));
  });

  const odd = Object.defineProperty({}, 'status', {
    get: () => {
      throw new Error('odd');
    },
  });

  it.each([new Error('down'), { statusCode: 500 }, { code: 'ECONNRESET' }, odd, 'text', null])(
    'takes %p for an answer',
    async (error) => {
      const bench = new Throttled({ minimumCalls: 1, ratio: 1 });
      await bench.many(50, error ?? { nothing: true });
      expect(bench.stats.throttled).toBe(0);
    },
  );

  it('goes by isRefusal if there is one, which may fail', async () => {
    const isRefusal = (error: unknown): boolean => {
      if (error === 'odd') throw new Error('odd');
      return error === 'no';
    };
    const bench = new Throttled({ isRefusal });
    await bench.many(30, REFUSED);
    await bench.many(10, 'odd');
    expect(bench.stats.throttle!.refused).toBe(0);
    await bench.many(100, 'no');
    expect(bench.stats.throttled).toBeGreaterThan(0);
    bench.protection.prepare({ db: { throttle: { most: 0.5 } } })();
    await bench.many(100, 'no');
    expect(bench.stats.throttle!.part).toBe(0.5);
    bench.protection.prepare({ db: {} })();
    expect(bench.stats.throttle).toBeUndefined();
  });

  it('holds back between 0 and `most`, whatever happens', async () => {
    const event = fc.record({ isRefused: fc.boolean(), passedMs: fc.nat({ max: 900 }) });
    await fc.assert(
      fc.asyncProperty(fc.array(event, { maxLength: 120 }), async (events) => {
        const bench = new Throttled({ minimumCalls: 5, window: '2s', most: 0.8 });
        for (const { isRefused, passedMs } of events) {
          bench.clock.advance(passedMs);
          await bench.once(isRefused ? REFUSED : undefined);
          const { part, requests, refused } = bench.stats.throttle!;
          expect(part).toBeGreaterThanOrEqual(0);
          expect(part).toBeLessThanOrEqual(0.8);
          if (requests < 5 || refused * 2 <= requests) expect(part).toBe(0);
        }
      }),
      { numRuns: 40 },
    );
  });
});

function pushback(ms: string): Metadata {
  const metadata = new Metadata();
  metadata.set('grpc-retry-pushback-ms', ms);
  return metadata;
}
