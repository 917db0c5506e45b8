import fc from 'fast-check';
import { AlgorithmCode, type Limit } from '../../lib/algorithms/limit.js';
import { KeyLease } from '../../lib/local/key-lease.js';
import { RevisedTwin } from '../../lib/cli/simulator/redis/revised-buckets.js';
import { compileLimit } from '../support/limits.js';

const NODES = 3;
const LIMITS = 4;
const RUNS = Number(process.env.WEIR_RUNS ?? 800);

type Step =
  | { readonly kind: 'wait'; readonly micros: number }
  /** The fleet gets the next limit; each node hears of it by itself. */
  | { readonly kind: 'change' }
  | { readonly kind: 'hear' | 'crash'; readonly node: number }
  | { readonly kind: 'lease' | 'use' | 'return' | 'take'; node: number; tokens: number };

const node = fc.nat({ max: NODES - 1 });
const tokens = fc.oneof(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 60 }));
const step = fc.oneof(
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('change') }) },
  { weight: 3, arbitrary: fc.record({ kind: fc.constantFrom('hear', 'hear', 'crash'), node }) },
  {
    weight: 3,
    arbitrary: fc.record({ kind: fc.constant('wait'), micros: fc.nat({ max: 800_000 }) }),
  },
  {
    weight: 12,
    arbitrary: fc.record({ kind: fc.constantFrom('lease', 'use', 'return', 'take'), node, tokens }),
  },
) as fc.Arbitrary<Step>;

function limitOf(rate: number, periodMs: number, burst: number): Limit {
  const algorithm = AlgorithmCode.TokenBucket;
  return compileLimit({ algorithm, rate, periodMs, burst, maxDelayMs: Infinity, subWindows: 1 });
}

const limit: fc.Arbitrary<Limit> = fc
  .tuple(
    fc.integer({ min: 1, max: 200 }),
    fc.constantFrom(1000, 1000, 60_000),
    fc.integer({ min: 1, max: 100 }),
  )
  .map((figures) => limitOf(...figures));

/**
 * A token leased of a limit of one; the limits of two and of 21 under which it is a small part of the
 * bucket, so that some flows in beside it and is taken; back to a limit of one, and the token is used.
 */
const THERE_AND_BACK: [Limit[], Step[]] = [
  [limitOf(1, 1000, 21), limitOf(2, 1000, 1), limitOf(1, 1000, 2), limitOf(1, 1000, 1)],
  [
    { kind: 'change' },
    { kind: 'hear', node: 0 },
    { kind: 'change' },
    { kind: 'lease', node: 0, tokens: 1 },
    { kind: 'hear', node: 2 },
    { kind: 'wait', micros: 23_810 },
    { kind: 'lease', node: 0, tokens: 1 },
    { kind: 'hear', node: 2 },
    { kind: 'change' },
    { kind: 'change' },
    { kind: 'wait', micros: 95_239 },
    { kind: 'hear', node: 1 },
    { kind: 'change' },
    { kind: 'hear', node: 2 },
    { kind: 'take', node: 1, tokens: 1 },
    { kind: 'hear', node: 2 },
    { kind: 'use', node: 0, tokens: 1 },
  ],
];

interface Taken {
  readonly part: number;
  readonly refilled: number;
}

/**
 * Nodes that lease tokens of one bucket and hear of changes one after another. Tokens count as a part
 * of the bucket that they are of; leased ones by the larger of the limit that they were leased under
 * and the one that there is when they are used.
 */
class Fleet {
  readonly taken: Taken[] = [];
  private now = 5_000_000_000;
  private latest = 0;
  /** The latest limit that the bucket has heard of. */
  private known = 0;
  private refilled = 0;
  private readonly twin = new RevisedTwin(true);
  private readonly nodes: { revision: number; lease: KeyLease }[] = [];

  constructor(private readonly limits: readonly Limit[]) {
    for (let i = 0; i < NODES; i++) this.nodes.push(this.freshNode());
    // From then on there is a bucket.
    this.take(0, 1);
  }

  play(step: Step): void {
    switch (step.kind) {
      case 'wait':
        this.now += step.micros;
        this.refilled +=
          (step.micros * this.limitAt(this.known).perMicro) / this.limitAt(this.known).full;
        return;
      case 'change':
        this.latest++;
        return;
      case 'hear':
        this.lease(step.node, 0, Infinity);
        this.nodes[step.node] = this.freshNode();
        return;
      case 'crash':
        this.nodes[step.node]!.lease = new KeyLease('k', this.now);
        return;
      case 'lease':
        return this.lease(step.node, step.tokens, 0);
      case 'return':
        return this.lease(step.node, 0, step.tokens);
      case 'use':
        return this.use(step.node, step.tokens);
      case 'take':
        return this.take(step.node, step.tokens);
    }
  }

  /** The parts of a bucket that were used in any span, less those that flowed in meanwhile. */
  worstSpan(): number {
    let [worst, sum, refilled] = [0, 0, 0];
    for (const take of this.taken) {
      sum = Math.max(0, sum - (take.refilled - refilled)) + take.part;
      refilled = take.refilled;
      worst = Math.max(worst, sum);
    }
    return worst;
  }

  private limitAt(revision: number): Limit {
    return this.limits[revision % this.limits.length]!;
  }

  private freshNode(): { revision: number; lease: KeyLease } {
    return { revision: this.latest, lease: new KeyLease('k', this.now) };
  }

  private callerOf(index: number): { limit: Limit; revision: number } {
    const { revision } = this.nodes[index]!;
    this.known = Math.max(this.known, revision);
    return { limit: this.limitAt(revision), revision: revision + 1 };
  }

  private lease(index: number, want: number, giveBack: number): void {
    const { lease } = this.nodes[index]!;
    const most = Math.min(giveBack, lease.tokensAt(this.now));
    const grant = this.twin.lease(this.callerOf(index), 'k', lease.report(most), want, this.now);
    lease.receive(grant, this.now, this.now);
  }

  private use(index: number, most: number): void {
    const { lease, revision } = this.nodes[index]!;
    const used = Math.min(most, lease.tokensAt(this.now));
    if (used === 0 || lease.spend(used, this.now) < 0) return;
    this.note(used, Math.max(this.limitAt(revision).capacity, this.limitAt(this.known).capacity));
  }

  private take(index: number, most: number): void {
    const caller = this.callerOf(index);
    const cost = Math.min(most, caller.limit.capacity);
    const { allowed } = this.twin.take(caller, 'k', cost, this.now, false);
    if (allowed) this.note(cost, this.limitAt(this.known).capacity);
  }

  private note(tokens: number, capacity: number): void {
    this.taken.push({ part: tokens / capacity, refilled: this.refilled });
  }
}

describe('leases of a limit that changes, on nodes that hear of it one after another', () => {
  it('stay within one bucket and what flows in, in any span', () => {
    let used = 0;
    fc.assert(
      fc.property(
        fc.array(limit, { minLength: LIMITS, maxLength: LIMITS }),
        fc.array(step, { maxLength: 80, size: 'max' }),
        (limits, steps) => {
          const fleet = new Fleet(limits);
          for (const one of steps) fleet.play(one);
          expect(fleet.worstSpan()).toBeLessThanOrEqual(1 + 1e-9);
          used += fleet.taken.length;
        },
      ),
      { numRuns: RUNS, examples: [THERE_AND_BACK] },
    );
    expect(used).toBeGreaterThan(1000);
  });
});
