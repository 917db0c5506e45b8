import fc from 'fast-check';
import { type Movement } from '../../support/quota-books.js';
import { QuotaFleet } from '../../support/quota-fleet.js';
import { FAMILIES, anyScene, mostBeyond } from '../../support/quota-histories.js';

const ROUNDING = 1e-6;

describe.each(FAMILIES)('%s', (_name, all) => {
  it('admits no more than C × Δ + B in any Δ, and of each app no more than its ceiling', () => {
    fc.assert(
      fc.property(anyScene(all), ({ given, history }) => {
        const { admissions, limits, books } = new QuotaFleet(given).run(history);
        if (limits.capacity > 0) {
          const beyond = mostBeyond(admissions, limits.capacity);
          expect(beyond).toBeLessThanOrEqual(limits.depth / 1e6 + ROUNDING);
        }
        for (const [
          index,
          { burst, guaranteed, elastic, burstDurationMs },
        ] of given.apps.entries()) {
          const own = admissions.filter(({ app }) => app === index);
          const deepest = Math.max(burst, given.maxCost);
          expect(mostBeyond(own, burst)).toBeLessThanOrEqual(deepest + ROUNDING);
          if (elastic && given.cluster !== undefined) continue;
          const grants = books.grants.filter(({ app }) => app === index);
          // The guaranteed bucket holds less than a second's worth, unless one request may cost more.
          const stock = Math.max(guaranteed, limits.apps[index]!.stockDepth / 1e6);
          const most = mostBeyondCredit(grants, guaranteed, burst - guaranteed, burstDurationMs);
          expect(most).toBeLessThanOrEqual(stock + ROUNDING);
        }
      }),
      { numRuns: 600 },
    );
  });
});

/** The most that was granted beyond `g × Δ + credit × (⌊Δ / duration⌋ + 2)` in any Δ. */
function mostBeyondCredit(
  grants: readonly Movement[],
  guaranteed: number,
  credit: number,
  durationMs: number,
): number {
  let most = 0;
  for (const [start, { atMicros: from }] of grants.entries()) {
    let sum = 0;
    for (const { atMicros, tokens } of grants.slice(start)) {
      sum += tokens;
      const span = atMicros - from;
      const windows = Math.floor(span / (durationMs * 1000)) + 2;
      most = Math.max(most, sum - (guaranteed * span) / 1e6 - credit * windows);
    }
  }
  return most;
}
