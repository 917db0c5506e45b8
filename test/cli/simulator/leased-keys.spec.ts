import { Outcome } from '../../../lib/algorithms/algorithm.js';
import { AlgorithmCode, type Limit } from '../../../lib/algorithms/limit.js';
import { LeaseRegistry } from '../../../lib/local/lease-registry.js';
import { type LimitLeases } from '../../../lib/local/limit-leases.js';
import { type StoreCall } from '../../../lib/stores/remote-store.js';
import { LeasedStore } from '../../support/leased-store.js';
import { seededRandom } from '../../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualTime } from '../../../lib/cli/simulator/engine/virtual-time.js';
import { compileLimit } from '../../support/limits.js';

const ONE_WAY_MICROS = 300;
const SECOND = 1_000_000;

function bucket(rate: number, burst: number): Limit {
  const algorithm = AlgorithmCode.TokenBucket;
  const shape = { periodMs: 1000, maxDelayMs: Infinity, subWindows: 1 };
  return compileLimit({ algorithm, rate, burst, ...shape });
}

/** Nodes around one key, on a network that takes its time; an ideal bucket beside them. */
class LeasedFleet {
  readonly time = new VirtualTime();
  readonly store: LeasedStore;
  private readonly ideal: LeasedStore;
  private readonly random: () => number;
  readonly nodes: LimitLeases[];
  asked = 0;
  local = 0;
  admitted = 0;
  idealAdmitted = 0;
  storeTakes = 0;

  constructor(limit: Limit, size: number, seed = 1) {
    this.random = seededRandom(seed);
    this.store = new LeasedStore(limit, () => this.time.now());
    this.ideal = new LeasedStore(limit, () => this.time.now());
    const link = { nodes: size, submit: (call: StoreCall) => this.send(call) };
    this.nodes = Array.from({ length: size }, () =>
      new LeaseRegistry(link, this.time).addLimit(
        { id: 'p:default:1', figures: limit, revision: 0 },
        'auto',
      ),
    );
  }

  get calls(): number {
    return this.storeTakes + this.nodes.reduce((sum, { calls }) => sum + calls, 0);
  }

  /** Poisson arrivals at a rate per second that may change with time. */
  offer(node: number, rate: (micros: number) => number, until: number): void {
    const perSecond = rate(this.time.now());
    const gap = perSecond > 0 ? (-Math.log(1 - this.random()) / perSecond) * SECOND : 10_000;
    const at = this.time.now() + gap;
    if (at > until) return;
    this.time.at(at, () => {
      if (perSecond > 0) this.ask(this.nodes[node]!);
      this.offer(node, rate, until);
    });
  }

  private send(call: StoreCall): void {
    this.store.submit(call);
    const sent = this.store.underway.at(-1)!;
    const index = (): number => this.store.underway.indexOf(sent);
    this.time.at(this.time.now() + ONE_WAY_MICROS, () => this.store.arrive(index()));
    this.time.at(this.time.now() + 2 * ONE_WAY_MICROS, () => this.store.answer(index()));
  }

  private ask(keys: LimitLeases): void {
    const outcome = new Outcome();
    outcome.nowMicros = this.time.now();
    this.asked++;
    if (this.ideal.take('k', 1)) this.idealAdmitted++;
    if (keys.take('k', 1, outcome)) {
      this.local++;
      this.admitted++;
      return;
    }
    this.storeTakes++;
    if (this.store.take('k', 1)) this.admitted++;
    keys.missed('k', 1, this.time.now());
  }
}

describe('keys of all temperatures, well below their limit', () => {
  it.each([2, 5, 10, 15, 20, 40, 100, 400, 900])(
    'at %i requests a second cost hardly more calls than without leases, and hot ones far fewer',
    async (demand) => {
      const fleet = new LeasedFleet(bucket(1000, 1000), 1, demand);
      const until = fleet.time.now() + 30 * SECOND;
      fleet.offer(0, () => demand, until);
      await fleet.time.runUntil(until);
      expect(fleet.admitted).toBe(fleet.asked);
      expect(fleet.calls).toBeLessThanOrEqual(1.1 * fleet.asked);
      if (demand < 40) return;
      expect(fleet.local / fleet.asked).toBeGreaterThan(0.95);
      expect(fleet.calls).toBeLessThan(0.25 * fleet.asked);
    },
  );
});

describe('a key of which more is asked than there is', () => {
  it.each([
    ['evenly', () => 1 / 4],
    [
      'by one node of four, another one every 200 ms',
      (node: number, micros: number) => (Math.floor(micros / 200_000) % 4 === node ? 1 : 0),
    ],
  ])('is given out nearly as an ideal bucket would, asked for %s', async (_name, share) => {
    const fleet = new LeasedFleet(bucket(2000, 400), 4);
    const until = fleet.time.now() + 20 * SECOND;
    for (let node = 0; node < 4; node++) {
      fleet.offer(node, (micros) => 3000 * share(node, micros), until);
    }
    await fleet.time.runUntil(until);
    expect(fleet.idealAdmitted).toBeLessThan(0.8 * fleet.asked);
    expect(fleet.admitted).toBeLessThanOrEqual(400 + 2000 * 20);
    expect(fleet.admitted / fleet.idealAdmitted).toBeGreaterThan(0.95);
  });
});
