import { checkOptions } from '../../lib/rate-limit.check.js';
import { checkOverload } from '../../lib/overload/settings.js';

describe('the options of overload', () => {
  it('have these defaults', () => {
    expect(checkOverload({})).toEqual({
      enabled: false,
      line: {
        ...{ targetMicros: 50_000, intervalMicros: 200_000, sliceMicros: 5000 },
        ...{ maxWaiting: 1000, maxInFlight: Infinity, tierCount: 4, isObserved: false },
      },
      tiers: ['S', 'A', 'B', 'C'],
      exempt: new Set(['/health', '/healthz', '/livez', '/readyz', '/metrics']),
      exemptBelow: [],
      retryAfterMs: 1000,
      headers: {},
      tickMs: 500,
      score: {
        weights: { cpu: 0.5, memory: 0.3, inFlight: 0.2 },
        from: { cpu: 0.7, memory: 0.8, inFlight: 500 },
        ...{ floor: 0.5, source: 'loop' },
      },
    });
  });

  it.each<[string, object]>([
    ['overload.enabled', { enabled: 'yes' }],
    ['overload.mode', { mode: 'off' }],
    ['overload.target', { target: '200ms' }],
    ['overload.target', { target: 0 }],
    ['overload.interval', { interval: 'soon' }],
    ['overload.slice', { slice: '51ms', target: '60ms' }],
    ['overload.slice', { slice: '10ms', target: '10ms' }],
    ['overload.maxWaiting', { maxWaiting: 0 }],
    ['overload.maxWaiting', { maxWaiting: 100_001 }],
    ['overload.maxInFlight', { maxInFlight: 1.5 }],
    ['overload.tiers', { tiers: [] }],
    ['overload.tiers', { tiers: ['S', 'S'] }],
    ['overload.tiers', { tiers: ['S', 'exempt'] }],
    ['overload.tiers', { tiers: [...'abcdefghi'] }],
    ['overload.exempt', { exempt: ['health'] }],
    ['overload.exempt', { exempt: ['/*'] }],
    ['overload.exempt', { exempt: ['/ops*'] }],
    ['overload.exempt', { exempt: ['/ops/*/x'] }],
    ['overload.exempt', { exempt: ['/health?full=1'] }],
    ['overload.exempt', { exempt: Array.from({ length: 101 }, (_, i) => `/${i}`) }],
    ['overload.retryAfter', { retryAfter: '0s' }],
    ['overload.headers', { headers: { 'x y': 'a' } }],
    ['overload.headers', { headers: { 'x-y': 'a\r\nSet-Cookie: b' } }],
    ['overload.headers', { headers: { 'Content-Length': '5' } }],
    ['overload.headers', { headers: { a: 5 } }],
    ['overload.tick', { tick: '50ms' }],
    ['overload.tick', { tick: '11s' }],
    ['overload.score.weights', { score: { weights: { cpu: 0.6 } } }],
    ['overload.score.weights.cpu', { score: { weights: { cpu: -1 } } }],
    ['overload.score.from.cpu', { score: { from: { cpu: 1 } } }],
    ['overload.score.from.inFlight', { score: { from: { inFlight: 0 } } }],
    ['overload.score.floor', { score: { floor: 0 } }],
    ['overload.score.source', { score: { source: 'moon' } }],
    ['overload.probes', { probes: [{ name: 'a' }] }],
    ['overload.probes', { probes: [null] }],
    ['overload.isExempt', { isExempt: async () => true }],
    ['overload.isExempt', { isExempt: true }],
    ['overload.targte', { targte: 5 }],
  ])('are refused by the name of the field: %s in %j', (field, overload) => {
    let error: unknown;
    try {
      checkOptions({ overload: overload });
    } catch (thrown) {
      error = thrown;
    }
    expect(error).toMatchObject({ field });
  });

  it.each([[async () => 'S'], ['S']])('and so is a tier that is not a function of now', (tier) => {
    expect(() => checkOptions({ tier: tier as never })).toThrow(/^tier: /);
  });

  it('has a name that is gone', () => {
    expect(() => checkOptions({ adaptive: {} } as never)).toThrow('adaptive is now overload');
  });
});
