import fc from 'fast-check';
import { type PolicyInput } from 'nestjs-weir';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import { type BoundLimit } from '../../lib/limiter/bound-limit.js';
import { PolicyRegistry } from '../../lib/limiter/policy-registry.js';
import { checkPolicy, type PolicySettings } from '../../lib/limiter/policy-options.js';
import { LeaseRegistry } from '../../lib/local/lease-registry.js';
import { MemoryStore } from '../../lib/stores/memory/memory-store.js';
import { type StoreCall } from '../../lib/stores/remote-store.js';
import { ManualClock } from '../support/manual-clock.js';

/** A registry of policies on a shared store that only listens. */
class Library {
  readonly clock = new ManualClock();
  readonly memory = new MemoryStore({ maxKeys: 100, idleTimeoutMs: 1000 }, this.clock);
  readonly calls: StoreCall[] = [];
  readonly policies: PolicyRegistry;

  constructor(policies: Record<string, PolicyInput>) {
    this.policies = new PolicyRegistry(policies, this.memory, true, 100, this.clock);
    const store = { nodes: 1, submit: (call: StoreCall) => void this.calls.push(call) };
    this.policies.leaseFrom(new LeaseRegistry(store, this.clock));
  }

  install(revision: number, policies: Record<string, PolicyInput>): ReadonlySet<string> {
    const checked = Object.entries(policies).map(([name, policy]) => checkPolicy(name, policy));
    return this.policies.install({ checked, removed: [] }, revision);
  }

  limit(policy = 'p'): BoundLimit {
    return this.policies.limitFor({ policy, key: 'k' });
  }

  take(limit: BoundLimit, nodes: number, cost: number): { allowed: boolean; left: number } {
    const outcome = new Outcome();
    outcome.nowMicros = this.clock.now();
    const table = limit.fallbackTable(nodes);
    table.take('k', cost, outcome);
    return { allowed: outcome.allowed, left: outcome.level / table.limit.perToken };
  }
}

const HOURLY = { rate: 100, period: '1h' } as const;

describe('the registry of policies', () => {
  it('keeps the very limit of what stays the same, under the new revision', () => {
    const library = new Library({ p: HOURLY, q: HOURLY });
    const [p, q] = [library.limit('p'), library.limit('q')];
    const changed = library.install(7, { p: { ...HOURLY }, q: { ...HOURLY, rate: 50 } });
    expect(library.limit('p')).toBe(p);
    expect(p.revision).toBe(7);
    expect([...changed]).toEqual(['q:default:1']);
    expect(library.limit('q')).not.toBe(q);
    // A request that still holds the old limit must not report it under the new revision.
    expect([q.revision, q.figures.capacity]).toEqual([0, 100]);
    expect([library.limit('q').revision, library.limit('q').figures.capacity]).toEqual([7, 50]);
  });

  it('speaks of what was replaced or removed under the revision that had it', () => {
    const other = { ...HOURLY, algorithm: 'sliding-window' } as const;
    const library = new Library({ p: HOURLY, q: HOURLY, r: HOURLY });
    library.install(3, { p: HOURLY, q: HOURLY, r: HOURLY });
    const [p, q, r] = ['p', 'q', 'r'].map((name) => library.limit(name));
    library.install(4, { p: { ...HOURLY, rate: 50 }, q: other });
    library.install(5, { p: { ...HOURLY, rate: 60 }, q: other });
    expect([p, q, r].map((one) => one!.revision)).toEqual([3, 3, 3]);
    expect(['p', 'q'].map((name) => library.limit(name).revision)).toEqual([5, 5]);
  });

  it('comes to the same whether sets share their policies or not', () => {
    const rates = fc.record(
      { p: fc.integer({ min: 1, max: 3 }), q: fc.integer({ min: 1, max: 3 }), r: fc.constant(1) },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(rates, { maxLength: 6 }), (sets) => {
        const library = new Library({ p: HOURLY });
        const kept = new Map<string, PolicySettings>();
        sets.forEach((set, index) => {
          const checked = Object.entries(set).map(([name, rate]) => {
            const id = `${name} ${rate}`;
            if (!kept.has(id)) kept.set(id, checkPolicy(name, { rate }));
            return kept.get(id)!;
          });
          library.policies.install({ checked, removed: [] }, index + 1);
          expect(library.policies.names().sort()).toEqual(Object.keys(set).sort());
          for (const [name, rate] of Object.entries(set)) {
            const { revision, figures } = library.limit(name);
            expect([revision, figures.capacity]).toEqual([index + 1, rate]);
          }
        });
      }),
    );
  });

  it('remembers denials of what stays the same, and none of what does not', () => {
    const library = new Library({ p: HOURLY, q: HOURLY, r: HOURLY });
    const untilMicros = library.clock.now() + 1e6;
    const denial = { untilMicros, dueMicros: untilMicros, cost: 1, level: 0 };
    for (const name of ['p', 'q', 'r']) library.limit(name).denials.remember('k', denial);
    const shadow = { ...HOURLY, shadow: true };
    library.install(1, { p: HOURLY, q: shadow, r: { ...HOURLY, rate: 99 } });
    const known = ['p', 'q', 'r'].map((name) => library.limit(name).denials.size);
    expect(known).toEqual([1, 1, 0]);
  });

  it('keeps the share for an outage as full as it was', () => {
    const library = new Library({ p: HOURLY });
    expect(library.take(library.limit(), 2, 30)).toEqual({ allowed: true, left: 20 });
    library.install(1, { p: { rate: 200, period: '1h' } });
    expect(library.take(library.limit(), 2, 10)).toEqual({ allowed: true, left: 30 });
  });

  it('has requests that began under the old limit fall back to the share of the new one', () => {
    const library = new Library({ p: HOURLY });
    const before = library.limit();
    library.install(1, { p: { rate: 10, period: '1h' } });
    library.install(2, { p: { rate: 20, period: '1h' } });
    expect(library.take(before, 2, 4)).toEqual({ allowed: true, left: 6 });
    expect(library.take(library.limit(), 2, 6)).toEqual({ allowed: true, left: 0 });
    expect(library.memory.size).toBe(1);
  });

  it('has requests that began under a policy that is gone take no room', () => {
    const library = new Library({ p: HOURLY });
    const before = library.limit();
    library.take(before, 1, 1);
    library.install(1, {});
    expect(library.memory.size).toBe(0);
    expect(library.take(before, 2, 50)).toEqual({ allowed: true, left: 0 });
    expect(library.take(before, 2, 1)).toEqual({ allowed: false, left: 0 });
    expect(library.memory.size).toBe(0);
  });

  it('keeps leases where only other options change, and ends them where figures do', () => {
    const leased: PolicyInput = { rate: 1000, sync: 'leased' };
    const library = new Library({ p: leased });
    const { leases } = library.limit();
    leases!.missed('k', 1, library.clock.now());
    expect(leases!.size).toBe(1);
    library.install(1, { p: { ...leased, shadow: true } });
    expect(library.limit().leases).toBe(leases);
    // Calls name the limit that is in force.
    const [call] = library.calls;
    expect(call).toMatchObject({ limit: { revision: 0 } });
    library.clock.advance(40);
    leases!['submit'](leases!['leases'].get('k')!, 0, NO_REPORT, library.clock.now());
    expect(library.calls.at(-1)).toMatchObject({ limit: { revision: 1 } });
    library.install(2, { p: { ...leased, rate: 500 } });
    expect(leases!.size).toBe(0);
    expect(library.limit().leases).not.toBe(leases);
    expect(library.policies.counters().p).toMatchObject({ leaseCalls: 2 });
  });
});

const NO_REPORT = { generation: 0, used: 0, returned: 0, olderUsed: 0, olderReturned: 0 };
