import { runPlan } from '../../../lib/cli/simulator/engine/run.js';
import { WEIR } from '../../../lib/cli/simulator/engine/weir.js';
import {
  even,
  movingHotspot,
  pulse,
  zipf,
  type Placement,
} from '../../../lib/cli/simulator/load.js';
import {
  callsPerSecond,
  idealOf,
  localPart,
  utilisation,
  worstIn,
} from '../../../lib/cli/simulator/measure/figures.js';
import { Ground, oneApp } from '../../../lib/cli/simulator/scenarios/ground.js';

interface Trial {
  readonly capacity?: number;
  readonly nodes: number;
  /** As a part of the capacity. */
  readonly load: number | ((second: number) => number);
  readonly place?: Placement;
}

interface Result {
  readonly utilisation: number;
  readonly local: number;
  readonly callsPerSecond: number;
  readonly worst: number;
}

const SECONDS = 10;
const PACE_SECONDS = 0.05;

async function simulate({ capacity, nodes, load, place = even(nodes) }: Trial): Promise<Result> {
  const ground = new Ground({ seed: 7 }, { quota: oneApp(capacity), nodes });
  const plan = ground.plan(SECONDS, ground.rates(load), place);
  const run = await runPlan(plan, WEIR);
  return {
    utilisation: utilisation(run, idealOf(plan, run.offered, 'bucket')),
    local: localPart(run),
    callsPerSecond: callsPerSecond(run, 0, SECONDS),
    worst: Math.max(...[0.1, 1].map((seconds) => worstIn(plan, run, seconds))),
  };
}

describe('a fleet on leased tokens, in virtual time', () => {
  it('below saturation decides in process, and calls no more than once per horizon', async () => {
    const result = await simulate({ nodes: 20, load: 0.7 });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.999);
    expect(result.local).toBeGreaterThanOrEqual(0.999);
    expect(result.callsPerSecond).toBeLessThanOrEqual(20 / 0.05);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it.each([1, 1.5])('serves skewed load of %d times the capacity', async (load) => {
    const result = await simulate({ nodes: 20, load, place: zipf(20) });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('follows a hotspot that moves every half second', async () => {
    const place = movingHotspot(20, 0.5, 0.8);
    const result = await simulate({ nodes: 20, load: 0.9, place });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('gives a burst after idle what the bucket holds, and no more', async () => {
    const result = await simulate({ nodes: 50, load: pulse(10, 2, 4) });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.97);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('under saturation asks no more than once per pace, and decides in process', async () => {
    const result = await simulate({ nodes: 50, load: 1.3 });
    expect(result.callsPerSecond).toBeLessThanOrEqual(50 / PACE_SECONDS);
    expect(result.local).toBeGreaterThanOrEqual(0.95);
    expect(result.utilisation).toBeGreaterThanOrEqual(0.98);
    expect(result.worst).toBeLessThanOrEqual(1);
  });

  it('strands nothing where the limit is low and the nodes are many', async () => {
    const result = await simulate({ capacity: 500, nodes: 100, load: 2 });
    expect(result.utilisation).toBeGreaterThanOrEqual(0.99);
    expect(result.callsPerSecond).toBeLessThanOrEqual(100 / PACE_SECONDS);
    expect(result.worst).toBeLessThanOrEqual(1);
  });
});
