import fc from 'fast-check';
import { AlgorithmCode, nodeShareOf, type Limit } from '../../lib/algorithms/limit.js';
import { compileLimit } from '../support/limits.js';

const { TokenBucket, LeakyPolicer, LeakyShaper, SlidingWindow } = AlgorithmCode;

function limitOf(algorithm: AlgorithmCode, rate: number, burst: number): Limit {
  const rest = { periodMs: 1000, maxDelayMs: 500, subWindows: 10 };
  return compileLimit({ algorithm, rate, burst, ...rest });
}

const perSecond = ({ perMicro, perToken }: Limit): number => (perMicro * 1e6) / perToken;

describe("a node's share of a limit while the store is away", () => {
  it('is the limit itself where there is one node, or none is known', () => {
    const limit = limitOf(TokenBucket, 100, 50);
    expect([nodeShareOf(limit, 1, 1), nodeShareOf(limit, 0, 60)]).toEqual([limit, limit]);
  });

  it.each([TokenBucket, LeakyPolicer, LeakyShaper])(
    'is one part of rate and burst, in whole tokens (algorithm %i)',
    (algorithm) => {
      const limit = limitOf(algorithm, 100, 50);
      const share = nodeShareOf(limit, 4, 1);
      expect([perSecond(share), share.capacity]).toEqual([25, 12]);
      expect(share.full).toBe(12 * share.perToken);
      expect(share.maxDelayMicros).toBe(limit.maxDelayMicros);
    },
  );

  it('is one part of what a window admits, in a window as long', () => {
    const limit = limitOf(SlidingWindow, 100, 1);
    expect(nodeShareOf(limit, 3, 1)).toEqual({ ...limit, capacity: 33, full: 33 });
  });

  it('holds the dearest request, however many nodes there are, at no higher rate', () => {
    const share = nodeShareOf(limitOf(TokenBucket, 100, 50), 1000, 20);
    expect([share.capacity, perSecond(share)]).toEqual([20, 0.1]);
    expect(nodeShareOf(limitOf(SlidingWindow, 100, 1), 1000, 20).capacity).toBe(20);
  });

  it('is in sum no more than the limit', () => {
    const figure = fc.integer({ min: 1, max: 1_000_000 });
    const nodes = fc.integer({ min: 2, max: 1000 });
    const algorithm = fc.constantFrom(TokenBucket, LeakyPolicer, LeakyShaper, SlidingWindow);
    fc.assert(
      fc.property(algorithm, figure, figure, nodes, (code, rate, burst, count) => {
        const limit = limitOf(code, rate, burst);
        const share = nodeShareOf(limit, count, 0);
        expect(count * share.capacity).toBeLessThanOrEqual(limit.capacity);
        expect(share.perToken * limit.perMicro).toBe(
          share.perMicro * limit.perToken * (code === SlidingWindow ? 1 : count),
        );
      }),
    );
  });
});
