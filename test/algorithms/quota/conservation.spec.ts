import fc from 'fast-check';
import { UNITS_PER_TOKEN } from '../../../lib/algorithms/quota/quota-limits.js';
import { QuotaFleet, START_MICROS } from '../../support/quota-fleet.js';
import { FAMILIES, anyScene } from '../../support/quota-histories.js';

describe.each(FAMILIES)('%s', (_name, all) => {
  // The books that the fleet keeps check every account after every call; see QuotaBooks.
  it('every token is in a bucket, leased, used, destroyed with its lease, or met a full bucket', () => {
    fc.assert(
      fc.property(anyScene(all), ({ given, history }) => {
        const { ledger, books, limits } = new QuotaFleet(given).run(history);
        const state = ledger.peek();
        if (state === undefined || limits.capacity === 0) return;
        const { level, outstanding, lastMicros } = state.cluster;
        const since = books.firstMicros;
        expect(since).toBeGreaterThanOrEqual(START_MICROS);
        const cameIn = limits.depth + limits.capacity * (lastMicros - since);
        const used = state.apps.reduce((sum, own) => sum + own.used * UNITS_PER_TOKEN, 0);
        const gone = books.destroyedUnits + books.overflowedUnits;
        expect(level + outstanding + used + gone).toBe(cameIn);
      }),
      { numRuns: 500 },
    );
  });
});
