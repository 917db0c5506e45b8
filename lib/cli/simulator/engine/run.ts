import { UNITS_PER_TOKEN } from '../../../algorithms/quota/quota-limits.js';
import { type QuotaSettings } from '../../../limiter/quota-options.js';
import { arrive, type Load } from '../load.js';
import { type Contender } from './contender.js';
import { type Fault } from './faults.js';
import { SimulatedFleet } from './fleet.js';
import { Observations, type Requests } from './observations.js';
import { seededRandom } from './seeded-random.js';
import { START_MICROS } from './virtual-time.js';
import { World } from './world.js';

/** The events of a run, the same for every contender. */
export interface RunPlan {
  readonly quota: QuotaSettings;
  /** Slots that have a process from the start. */
  readonly nodes: number;
  /** Processes that there are at most; the number of nodes, unless more join later. */
  readonly plannedNodes?: number;
  readonly seconds: number;
  readonly load: Load;
  readonly faults?: readonly Fault[];
  /** Tokens that each request takes. */
  readonly cost: number;
  readonly seed: number;
}

/** The cluster's bucket at a second of the run, in tokens. */
export interface LevelSample {
  readonly second: number;
  readonly level: number;
  readonly outstanding: number;
}

export interface RunRecord {
  readonly contender: string;
  readonly offered: Requests;
  readonly admitted: Requests;
  readonly decisions: number;
  readonly waited: number;
  /** Seconds at which calls to the store were sent. */
  readonly calls: readonly number[];
  readonly samples: readonly LevelSample[];
}

export const SAMPLE_MS = 50;
/** Time for the last requests to be answered, too. */
const SETTLE_SECONDS = 0.1;

/** Lets a contender live through a plan. */
export async function runPlan(plan: RunPlan, contender: Contender): Promise<RunRecord> {
  const { quota, nodes, plannedNodes = nodes, seconds, load, faults = [], cost, seed } = plan;
  const world = new World(quota, plannedNodes, seed);
  const seen = new Observations();
  const fleet = new SimulatedFleet(world, contender.start(world), seen, cost);
  const { time, network } = world;
  for (let slot = 0; slot < nodes; slot++) fleet.join(slot);
  for (const fault of faults) {
    time.at(START_MICROS + fault.second * 1e6, () => fault.strike(world, fleet));
  }
  const samples = sample(world);
  arrive(time, load, seconds, seededRandom(seed), (slot, app) => fleet.request(slot, app));
  await time.runUntil(seconds + SETTLE_SECONDS);
  return {
    contender: contender.name,
    offered: { at: seen.offeredAt, app: seen.offeredApp },
    admitted: { at: seen.admittedAt, app: seen.admittedApp },
    decisions: seen.offeredAt.length,
    waited: seen.waited,
    calls: network.sentAt,
    samples,
  };
}

function sample({ time, store }: World): readonly LevelSample[] {
  const samples: LevelSample[] = [];
  time.every(SAMPLE_MS, () => {
    const cluster = store.ledger.peek()?.cluster;
    if (cluster === undefined) return;
    samples.push({
      second: time.seconds(),
      level: cluster.level / UNITS_PER_TOKEN,
      outstanding: cluster.outstanding / UNITS_PER_TOKEN,
    });
  });
  return samples;
}
