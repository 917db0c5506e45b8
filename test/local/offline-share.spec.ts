import fc from 'fast-check';
import { compileQuota, type ClusterFigures } from '../../lib/algorithms/quota/quota-limits.js';
import { shareFillMicrosOf, OfflineShare } from '../../lib/local/offline-share.js';
import { type Movement } from '../support/quota-books.js';
import { mostBeyond } from '../support/quota-histories.js';

const FIGURES = { guaranteed: 5000, maxCost: 1, fillMicros: 200_000 };
/** Nine tenths of the guarantee, and as many as flow in while the cluster's burst does. */
const RATE = 4500;
const DEPTH = 900;

/** How many of so many requests at once pass. */
function burst(share: OfflineShare, count: number, nowMicros: number): number {
  let passed = 0;
  for (let i = 0; i < count; i++) if (share.take(1, nowMicros)) passed++;
  return passed;
}

describe('the depth of a share, in time', () => {
  const fillMicros = (cluster: ClusterFigures | undefined, maxCost = 1): number => {
    const one = { burstDurationMs: 60_000, priority: 1, elastic: true };
    const apps = [{ app: 'a', guaranteed: 5000, burst: 8000, ...one }];
    const rest = { paceMs: 50, leaseTtlMs: 1000, reserveTarget: 0 };
    return shareFillMicrosOf(compileQuota({ cluster, apps, maxCost, ...rest }));
  };

  it("is that in which the cluster's bucket fills, of whatever makes it deep", () => {
    const cluster = { capacity: 10_000, burstRatio: 1.2, reservedRatio: 0 };
    expect(fillMicros(cluster)).toBe(200_000);
    expect(fillMicros({ ...cluster, burstRatio: 1 })).toBe(125_000);
    expect(fillMicros(cluster, 5000)).toBe(500_000);
  });

  it('is a second where there is no cluster', () => {
    expect(fillMicros(undefined)).toBe(1_000_000);
    expect(fillMicros(undefined, 5000)).toBe(1_000_000);
  });
});

describe('the share of a node while the store is away', () => {
  it('V-A47: lets requests pass that come ten at once at 2 % of the rate', () => {
    const share = new OfflineShare(FIGURES);
    let passed = 0;
    for (let turn = 0; turn < 30; turn++) passed += burst(share, 10, turn * 100_000);
    expect(passed).toBe(300);
  });

  it('is a part of nine tenths of the guarantee, and of the burst', () => {
    expect(burst(new OfflineShare(FIGURES), 10_000, 0)).toBe(DEPTH);
    expect(burst(new OfflineShare(FIGURES, 4), 10_000, 0)).toBe(DEPTH / 4);
  });

  it('has room for the largest request, however many nodes there are', () => {
    const share = new OfflineShare({ ...FIGURES, maxCost: 50 }, 1000);
    expect(share.take(50, 0)).toBe(true);
    expect(share.take(1, 0)).toBe(false);
    expect(share.waitMicros(50, 0)).toBe(Math.ceil((50 * 1000 * 1e6) / RATE));
  });

  it('holds no more than it may when there are more nodes, and fills slowly when there are fewer', () => {
    const share = new OfflineShare(FIGURES);
    share.shareWith(10, 0);
    expect(burst(share, 10_000, 0)).toBe(DEPTH / 10);
    share.shareWith(1, 0);
    expect(burst(share, 10_000, 0)).toBe(0);
    // Tokens that flowed in before there were more nodes came at the old rate.
    share.shareWith(10, 100_000);
    expect(burst(share, 10_000, 100_000)).toBe(DEPTH / 10);
  });

  it('takes back no more than it holds', () => {
    const share = new OfflineShare(FIGURES);
    share.putBack(100, 0);
    expect(burst(share, 10_000, 0)).toBe(DEPTH);
    share.putBack(5, 0);
    expect(burst(share, 10_000, 0)).toBe(5);
  });

  it('frees no burst, however the number of nodes, the figures and the charges change', () => {
    const steps = fc.array(
      fc.record({
        gapMicros: fc.oneof(fc.constant(0), fc.nat({ max: 300_000 })),
        what: fc.constantFrom('take', 'take', 'charge', 'nodes', 'lower', 'change'),
        count: fc.nat({ max: 2000 }),
        nodes: fc.integer({ min: 1, max: 20 }),
      }),
      { maxLength: 60 },
    );
    fc.assert(
      fc.property(steps, (history) => {
        const share = new OfflineShare(FIGURES);
        const admissions: Movement[] = [];
        let now = 0;
        for (const { gapMicros, what, count, nodes } of history) {
          now += gapMicros;
          if (what === 'take') {
            admissions.push({ atMicros: now, app: 0, tokens: burst(share, count, now) });
          }
          if (what === 'charge') {
            share.charge(count, now);
            // Charged: admitted in another way, under a bound of its own.
          }
          if (what === 'nodes') share.shareWith(nodes, now);
          if (what === 'lower') share.lowerTo({ ...FIGURES, guaranteed: count }, now);
          if (what === 'change') share.change(FIGURES, now);
        }
        expect(mostBeyond(admissions, RATE)).toBeLessThanOrEqual(DEPTH + 1e-6);
      }),
      { numRuns: 300 },
    );
  });
});
