import {
  checkQuota,
  type QuotaSettings,
  type QuotaOptions,
} from '../../../limiter/quota-options.js';
import { seededRandom } from '../engine/seeded-random.js';
import { CHURN } from './churn.js';
import { reachOf } from './ground.js';
import { type Scenario, type ScenarioReport } from './scenario.js';
import { HOTSPOT, LOW_LIMIT, SKEW, SKEW_OVERLOAD } from './steady.js';

/** A capacity that leaves something for every app on any fleet; smaller ones have fewer apps and nodes. */
const LARGE_CAPACITY = 5000;
const [LEAST_CAPACITY, MOST_CAPACITY] = [2, 1_000_000];
const MOST_APPS = 20;
const MOST_NODES = 100;
const MOST_BURST = 20;
/** Guarantees are cut to whole tokens, and so add up to a little less than this part of what they may. */
const LEAST_GUARANTEED = 0.05;
/** Tokens per second for each app, and for each of its nodes, where the capacity is small. */
const TOKENS_PER_APP = 10;

/** Random quotas go through these in turn: where utilisation, local decisions and calls are promised. */
export const LOAD_SHAPES: readonly Scenario[] = [SKEW_OVERLOAD, HOTSPOT, LOW_LIMIT, CHURN, SKEW];

export interface RandomQuota {
  readonly options: QuotaOptions;
  readonly quota: QuotaSettings;
  readonly nodes: number;
}

/**
 * A quota of 1 to 20 apps with any guarantees, bursts and priorities, on 1 to 100 nodes; every other one of a
 * small capacity.
 */
export function randomQuota(seed: number): RandomQuota {
  // Neighbouring seeds begin alike.
  const random = seededRandom(Math.imul(seed + 1, 0x9e3779b1));
  const whole = (from: number, to: number): number => from + Math.floor(random() * (to - from + 1));
  const scaled = (from: number, to: number): number => from * (to / from) ** random();
  /** At most that many, where there is so much for all of them. */
  const fitting = (most: number, tokens: number): number =>
    whole(1, Math.max(1, Math.min(most, Math.floor(tokens / TOKENS_PER_APP))));
  const isSmall = seed % 2 === 1;
  const capacity = Math.round(
    isSmall ? scaled(LEAST_CAPACITY, LARGE_CAPACITY) : scaled(LARGE_CAPACITY, MOST_CAPACITY),
  );
  const part = 0.9 * (LEAST_GUARANTEED + (1 - LEAST_GUARANTEED) * random());
  const count = isSmall ? fitting(MOST_APPS, capacity) : whole(1, MOST_APPS);
  const weights = Array.from({ length: count }, () => -Math.log(1 - random()));
  const all = weights.reduce((a, b) => a + b, 0);
  const apps = weights.map((weight, index) => {
    const guaranteed = Math.max(1, Math.floor((capacity * part * weight) / all));
    const app: QuotaOptions['apps'][string] = {
      guaranteed,
      burst: Math.round(guaranteed * scaled(1, MOST_BURST)),
      burstDuration: `${whole(1, 60)}s`,
      priority: whole(0, 3) as 0 | 1 | 2 | 3,
      elastic: random() < 0.8,
    };
    return [`app${index}`, app] as const;
  });
  const burstRatio = random() < 0.7 ? 1.2 : 1.2 + 0.3 * random();
  const options = { cluster: { capacity, burstRatio }, apps: Object.fromEntries(apps) };
  const quota = checkQuota(options);
  const nodes = isSmall
    ? fitting(MOST_NODES, reachOf(quota.figures) / count)
    : whole(1, MOST_NODES);
  return { options, quota, nodes };
}

/** Everything about it follows from the seed, so that a line of a report can be looked at again. */
export async function runOnRandomQuota(seed: number, scenario: Scenario): Promise<ScenarioReport> {
  const { quota, nodes } = randomQuota(seed);
  const { rows, ...report } = await scenario.run({ quota, nodes, seed, against: [] });
  const of = `${scenario.name}, seed ${seed} (${quota.figures.apps.length} apps, ${nodes} nodes)`;
  return { ...report, rows: rows.map((row) => ({ ...row, scenario: of })) };
}
