import { clusterDepth, type ClusterFigures } from '../../lib/algorithms/quota/index.js';
import { seededRandom } from '../support/seeded-random.js';
import { VirtualFleet } from '../support/virtual-fleet.js';

interface Scenario {
  readonly capacity: number;
  readonly nodes: number;
  /** Requests per second that node `i` gets at second `t`. */
  readonly rate: (i: number, t: number) => number;
}

interface Result {
  /** Admitted, as part of what one bucket that sees everything would have admitted. */
  readonly utilisation: number;
  /** Decisions that did not wait for the store. */
  readonly local: number;
  readonly callsPerSecond: number;
  /** Most that was admitted in any 0.1 s or 1 s, as part of the bound. */
  readonly worst: number;
}

const SECONDS = 10;
const PACE_MS = 50;

async function simulate({ capacity, nodes, rate }: Scenario): Promise<Result> {
  const cluster: ClusterFigures = { capacity, burstRatio: 1.2, reservedRatio: 0.1 };
  const app = {
    app: 'a',
    guaranteed: capacity / 2,
    burst: capacity * 2,
    burstDurationMs: 1000,
    priority: 0,
    elastic: true,
  };
  const fleet = new VirtualFleet(
    { cluster, apps: [app], maxCost: 1, paceMs: PACE_MS, leaseTtlMs: 1000, reserveTarget: 0 },
    seededRandom(7),
  );
  const start = fleet.time.now();
  const end = start + SECONDS * 1e6;
  for (let i = 0; i < nodes; i++) {
    fleet.offer(fleet.join(), (micros) => rate(i, (micros - start) / 1e6), end);
  }
  await fleet.time.runUntil(end);
  const depth = clusterDepth(cluster, 1, PACE_MS);
  const times = fleet.admitted.map(({ at }) => at);
  const sum = (pick: 'decisions' | 'waited'): number =>
    fleet.nodes.reduce((total, { node }) => total + node[pick], 0);
  return {
    utilisation: times.length / idealCount(fleet.offeredAt, capacity, depth),
    local: 1 - sum('waited') / sum('decisions'),
    callsPerSecond: fleet.store.calls / SECONDS,
    worst: Math.max(...[1e5, 1e6].map((span) => worstIn(times, span, capacity, depth))),
  };
}

/** What one bucket without any network would have admitted of the same requests. */
function idealCount(offered: readonly number[], capacity: number, depth: number): number {
  let level = depth;
  let last = offered[0] ?? 0;
  let count = 0;
  for (const at of offered) {
    level = Math.min(depth, level + ((at - last) * capacity) / 1e6);
    last = at;
    if (level < 1) continue;
    level--;
    count++;
  }
  return count;
}

function worstIn(times: readonly number[], span: number, capacity: number, depth: number): number {
  const bound = (capacity * span) / 1e6 + depth;
  let worst = 0;
  for (let first = 0, last = 0; last < times.length; last++) {
    while (times[last]! - times[first]! > span) first++;
    worst = Math.max(worst, (last - first + 1) / bound);
  }
  return worst;
}

function zipf(nodes: number): (i: number) => number {
  const weights = Array.from({ length: nodes }, (_, i) => 1 / (i + 1) ** 1.2);
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return (i) => weights[i]! / total;
}

describe('a fleet on leased tokens, in virtual time', () => {
  it('below saturation decides in process, and calls no more than once per horizon', async () => {
    const even = { capacity: 10_000, nodes: 20, rate: () => 350 };
    const result = await simulate(even);
    expect(result.utilisation).toBeGreaterThanOrEqual(0.999);
    expect(result.local).toBeGreaterThanOrEqual(0.999);
    expect(result.callsPerSecond).toBeLessThanOrEqual(20 / 0.05);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it.each([1, 1.5])('serves skewed load of %d times the capacity', async (load) => {
    const share = zipf(20);
    const rate = (i: number): number => 10_000 * load * share(i);
    const result = await simulate({ capacity: 10_000, nodes: 20, rate });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('follows a hotspot that moves every half second', async () => {
    const isHot = (i: number, t: number): boolean => Math.floor(t / 0.5) % 20 === i;
    const rate = (i: number, t: number): number => 9000 * (isHot(i, t) ? 0.8 : 0.2 / 19);
    const result = await simulate({ capacity: 10_000, nodes: 20, rate });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('gives a burst after idle what the bucket holds, and no more', async () => {
    const rate = (_: number, t: number): number => (t > 2 && t < 4 ? 2000 : 0);
    const result = await simulate({ capacity: 10_000, nodes: 50, rate });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.97);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('under saturation asks no more than once per pace, and decides in process', async () => {
    const result = await simulate({ capacity: 10_000, nodes: 50, rate: () => 260 });
    expect(result.callsPerSecond).toBeLessThanOrEqual(50 / (PACE_MS / 1000));
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.utilisation).toBeGreaterThanOrEqual(0.98);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('strands nothing where the limit is low and the nodes are many', async () => {
    const result = await simulate({ capacity: 500, nodes: 100, rate: () => 10 });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(result.callsPerSecond).toBeLessThanOrEqual(100 / (PACE_MS / 1000));
    expect(result.worst).toBeLessThanOrEqual(1);
  });
});
