import fc from 'fast-check';
import { weightedShares, type ShareClaim } from '../../../lib/algorithms/quota/weighted-share.js';

const WEIGHTS = [8, 4, 2, 1];
const TINY = 1e-6;

interface Scene {
  readonly claims: ShareClaim[];
  readonly capacity: number;
}

const claim = (amount: fc.Arbitrary<number>): fc.Arbitrary<ShareClaim> =>
  fc
    .record({
      demand: amount,
      guaranteed: amount,
      beyond: amount,
      weight: fc.constantFrom(...WEIGHTS),
    })
    .map(({ beyond, ...own }) => ({ ...own, burst: own.guaranteed + beyond }));

/** Claims whose guarantees fit the capacity, as the configuration must see to. */
const scenes: fc.Arbitrary<Scene> = fc
  .constantFrom(
    fc.nat({ max: 20 }),
    fc.nat({ max: 1_000_000 }),
    fc.double({ min: 0, max: 1000, noNaN: true }),
  )
  .chain((amount) =>
    fc.record({ claims: fc.array(claim(amount), { maxLength: 6 }), extra: amount }),
  )
  .map(({ claims, extra }) => ({ claims, capacity: sum(claims, guaranteedPart) + extra }));

function sum<T>(items: readonly T[], of: (item: T) => number): number {
  return items.reduce((total, item) => total + of(item), 0);
}

const guaranteedPart = ({ demand, guaranteed }: ShareClaim): number => Math.min(demand, guaranteed);
const brim = ({ demand, burst }: ShareClaim): number => Math.min(demand, burst);

describe('weighted shares', () => {
  const check = (of: (scene: Scene, shares: number[]) => void): void =>
    fc.assert(
      fc.property(scenes, (scene) => of(scene, weightedShares(scene.claims, scene.capacity))),
      { numRuns: 1000 },
    );

  it('cut nobody below the guaranteed part of the demand', () => {
    check(({ claims }, shares) => {
      for (const [i, one] of claims.entries()) {
        expect(shares[i]).toBeGreaterThanOrEqual(guaranteedPart(one));
      }
    });
  });

  it('give nobody more than the demand or the burst', () => {
    check(({ claims }, shares) => {
      for (const [i, one] of claims.entries()) {
        expect(shares[i]).toBeLessThanOrEqual(Math.max(brim(one), guaranteedPart(one)) + TINY);
      }
    });
  });

  it('give out the capacity, or all that is asked for if that is less', () => {
    check(({ claims, capacity }, shares) => {
      const most = Math.min(capacity, sum(claims, brim));
      expect(Math.abs(sum(shares, (share) => share) - most)).toBeLessThan(TINY * (1 + most));
    });
  });

  it('give nobody more beyond the guarantee, by weight, than one that goes short', () => {
    check(({ claims }, shares) => {
      const perWeight = claims.map((one, i) => (shares[i]! - guaranteedPart(one)) / one.weight);
      for (const [i, one] of claims.entries()) {
        if (shares[i]! >= brim(one) - TINY) continue;
        expect(Math.max(...perWeight)).toBeLessThanOrEqual(perWeight[i]! + TINY);
      }
    });
  });

  it('never take from an app whose weight grows', () => {
    check(({ claims, capacity }, shares) => {
      for (const [i, one] of claims.entries()) {
        const heavier = claims.with(i, { ...one, weight: 2 * one.weight });
        expect(weightedShares(heavier, capacity)[i]).toBeGreaterThanOrEqual(shares[i]! - TINY);
      }
    });
  });

  it('are the same whatever is made of them: asking for the share gives the share', () => {
    check(({ claims, capacity }, shares) => {
      const again = claims.map((one, i) => ({ ...one, demand: shares[i]! }));
      for (const [i, share] of weightedShares(again, capacity).entries()) {
        expect(Math.abs(share - shares[i]!)).toBeLessThan(TINY * (1 + share));
      }
      expect(weightedShares(claims, capacity)).toEqual(shares);
    });
  });

  it('of 4 × 5,000 offered with 1,000 guaranteed each fill 10,000 as the design says', () => {
    const claims = WEIGHTS.map((weight) => ({
      demand: 5000,
      guaranteed: 1000,
      burst: 5000,
      weight,
    }));
    const shares = weightedShares(claims, 10_000);
    expect(shares.map(Math.round)).toEqual([4200, 2600, 1800, 1400]);
  });

  it('leave the rest where nobody asks for it, and need no claims', () => {
    const one = { demand: 10, guaranteed: 5, burst: 100, weight: 1 };
    expect(weightedShares([one], 1000)).toEqual([10]);
    expect(weightedShares([], 1000)).toEqual([]);
  });
});
