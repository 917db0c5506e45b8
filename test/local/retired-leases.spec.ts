import { Outcome } from '../../lib/algorithms/algorithm.js';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { LeaseRegistry } from '../../lib/local/lease-registry.js';
import { LeasedStore } from '../support/leased-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { compileLimit } from '../support/limits.js';

function leasedNode() {
  const clock = new ManualClock(1_000_000_000);
  const limit = compileLimit({
    algorithm: AlgorithmCode.TokenBucket,
    rate: 1,
    periodMs: 86_400_000,
    burst: 1000,
    maxDelayMs: Infinity,
    subWindows: 1,
  });
  const store = new LeasedStore(limit, () => clock.now());
  const leaseRegistry = new LeaseRegistry(store, clock);
  const keys = leaseRegistry.addLimit({ id: 'p:default:1', figures: limit, revision: 0 }, 'leased');
  const take = (cost: number): boolean => {
    const outcome = new Outcome();
    outcome.nowMicros = clock.now();
    return keys.take('k', cost, outcome);
  };
  for (let i = 0; i < 100; i++) keys.missed('k', 1, clock.now());
  return { clock, store, leaseRegistry, keys, take };
}

describe('leases of a limit that has changed', () => {
  it('go back at once, those that were spent as spent', () => {
    const { clock, store, leaseRegistry, keys, take } = leasedNode();
    store.answerAll();
    const held = keys.tokensOf('k', clock.now());
    expect(held).toBeGreaterThan(0);
    expect(take(1)).toBe(true);
    leaseRegistry.retire(keys);
    expect(keys.tokensOf('k', clock.now())).toBe(0);
    expect(take(1)).toBe(false);
    store.answerAll();
    expect(store.look()).toEqual({ inStore: 999, outstanding: 0 });
    expect(clock.pending).toBe(0);
  });

  it('go back also if they come later', () => {
    const { store, leaseRegistry, keys, take } = leasedNode();
    expect(store.underway).toHaveLength(1);
    leaseRegistry.retire(keys);
    store.answerAll();
    expect(take(1)).toBe(false);
    expect(store.look()).toEqual({ inStore: 1000, outstanding: 0 });
  });

  it('are not followed by others', () => {
    const { clock, store, leaseRegistry, keys } = leasedNode();
    leaseRegistry.retire(keys);
    store.answerAll();
    const calls = store.calls.length;
    for (let i = 0; i < 100; i++) keys.missed('k', 1, clock.now());
    expect([keys.size, store.calls.length]).toEqual([0, calls]);
  });
});
