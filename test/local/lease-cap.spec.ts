import fc from 'fast-check';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { LeaseRegistry } from '../../lib/local/lease-registry.js';
import { type LimitLeases } from '../../lib/local/limit-leases.js';
import { type StoreCall } from '../../lib/stores/remote-store.js';
import { LeasedStore } from '../support/leased-store.js';
import { ManualClock } from '../support/manual-clock.js';
import { compileLimit } from '../support/limits.js';

const NODES = 3;

type Step =
  | { readonly kind: 'ask'; readonly node: number; readonly cost: number; readonly times: number }
  | { readonly kind: 'arrive' | 'answer' | 'lose' | 'lose late'; readonly index: number }
  | { readonly kind: 'wait' | 'store clock steps back'; readonly micros: number }
  | { readonly kind: 'crash' | 'leave'; readonly node: number }
  | { readonly kind: 'refund'; readonly node: number };

const node = fc.nat({ max: NODES - 1 });
const index = fc.nat({ max: 5 });

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('ask' as const),
      node,
      cost: fc.integer({ min: 1, max: 3 }),
      times: fc.integer({ min: 1, max: 60 }),
    }),
  },
  { weight: 6, arbitrary: fc.record({ kind: fc.constant('answer' as const), index }) },
  {
    weight: 3,
    arbitrary: fc.record({
      kind: fc.constantFrom('arrive' as const, 'lose' as const, 'lose late' as const),
      index,
    }),
  },
  {
    weight: 6,
    arbitrary: fc.record({
      kind: fc.constant('wait' as const),
      micros: fc.oneof(
        fc.integer({ min: 0, max: 60_000 }),
        fc.integer({ min: 0, max: 60_000 }),
        fc.integer({ min: 0, max: 1_200_000 }),
      ),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      kind: fc.constant('store clock steps back' as const),
      micros: fc.integer({ min: 0, max: 3_000_000 }),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constantFrom('crash' as const, 'leave' as const), node }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('refund' as const), node }) },
);

const limits = fc
  .record({
    rate: fc.constantFrom(1, 50, 1000, 20_000),
    burst: fc.constantFrom(3, 60, 100, 1000),
  })
  .map((figures) =>
    compileLimit({
      ...figures,
      algorithm: AlgorithmCode.TokenBucket,
      periodMs: 1000,
      maxDelayMs: Infinity,
      subWindows: 1,
    }),
  );

/** Nodes that come and go around one key, and the most that was ever let through too fast. */
class Fleet {
  readonly time = new ManualClock(5_000_000_000);
  readonly store: LeasedStore;
  /** The level that a bucket as deep as the worst span so far would have now, in units. */
  private poured = 0;
  private pouredAt = 0;
  worst = 0;
  leased = 0;
  private storeBehind = 0;
  private readonly fleetLeases: LeaseRegistry[] = [];
  private readonly members: LimitLeases[] = [];
  private lastCost = 0;

  constructor(readonly limit: Limit) {
    this.store = new LeasedStore(limit, () => this.time.now() - this.storeBehind);
    for (let i = 0; i < NODES; i++) this.join(i);
  }

  run(step: Step): void {
    switch (step.kind) {
      case 'ask':
        for (let i = 0; i < step.times; i++) this.ask(step.node, step.cost);
        return;
      case 'arrive':
        return this.store.arrive(step.index % Math.max(1, this.store.underway.length));
      case 'answer':
        return this.answer(step.index);
      case 'lose':
      case 'lose late':
        return this.store.lose(step.index, { late: step.kind === 'lose late' });
      case 'wait':
        return this.time.advanceMicros(step.micros);
      case 'store clock steps back':
        this.storeBehind += step.micros;
        return;
      case 'crash':
        return this.join(step.node);
      case 'leave':
        this.fleetLeases[step.node]!.close();
        return this.join(step.node);
      case 'refund':
        return this.refund(step.node);
    }
  }

  private answer(index: number): void {
    if (this.store.underway.length > 0) this.store.answer(index % this.store.underway.length);
  }

  /** A node of that number starts anew; whatever the one before it held nobody knows any more. */
  private join(index: number): void {
    const { store } = this;
    const isAlive = (): boolean => this.fleetLeases[index] === leaseRegistry;
    const link = {
      nodes: NODES,
      submit: (call: StoreCall) => (isAlive() ? store.submit(call) : undefined),
    };
    const leaseRegistry: LeaseRegistry = new LeaseRegistry(link, this.time);
    this.fleetLeases[index] = leaseRegistry;
    this.members[index] = leaseRegistry.addLimit(
      { id: 'p:default:1', figures: this.limit, revision: 0 },
      'leased',
    );
  }

  private ask(index: number, cost: number): void {
    const keys = this.members[index]!;
    const outcome = new Outcome();
    outcome.nowMicros = this.time.now();
    if (keys.take('k', cost, outcome)) {
      this.leased++;
      this.lastCost = cost;
      return this.pour(cost);
    }
    if (this.store.take('k', cost)) this.pour(cost);
    keys.missed('k', cost, this.time.now());
  }

  /** The last request was let through, but did nothing. */
  private refund(index: number): void {
    const { lastCost } = this;
    if (lastCost === 0 || !this.members[index]!.putBack('k', lastCost, this.time.now())) return;
    this.lastCost = 0;
    this.pour(-lastCost);
  }

  /** Tokens used in any span, less the rate, are at most what this ever held. */
  private pour(cost: number): void {
    const now = this.time.now();
    const drained = (now - this.pouredAt) * this.limit.perMicro;
    this.poured = Math.max(0, this.poured - drained) + cost * this.limit.perToken;
    this.pouredAt = now;
    this.worst = Math.max(this.worst, this.poured);
  }
}

describe('whatever happens to nodes and calls', () => {
  it('no span sees more than burst + rate × span', () => {
    let leased = 0;
    fc.assert(
      fc.property(limits, fc.array(step, { minLength: 20, maxLength: 200 }), (limit, steps) => {
        const fleet = new Fleet(limit);
        for (const one of steps) fleet.run(one);
        leased += fleet.leased;
        expect(fleet.worst).toBeLessThanOrEqual(limit.full);
      }),
      { numRuns: 500 },
    );
    // The histories must be ones in which nodes decide by themselves.
    expect(leased).toBeGreaterThan(1000);
  });
});
