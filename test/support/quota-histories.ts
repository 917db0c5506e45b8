import fc from 'fast-check';
import {
  clusterDepth,
  stockDepth,
  type AppFigures,
  type ClusterFigures,
  type QuotaFigures,
} from '../../lib/algorithms/quota/quota-limits.js';
import { type Movement } from './quota-books.js';
import { type Action, type FleetStep } from './quota-fleet.js';

export const APP: AppFigures = {
  app: 'app',
  guaranteed: 20_000,
  burst: 80_000,
  burstDurationMs: 60_000,
  priority: 0,
  elastic: false,
};

export const CLUSTER: ClusterFigures = { capacity: 1_000_000, burstRatio: 1.2, reservedRatio: 0.1 };

/** Figures with the defaults of the design where nothing else is said. */
export function figures(
  apps: readonly Partial<AppFigures>[],
  cluster: Partial<ClusterFigures> | undefined = {},
  others: Partial<Pick<QuotaFigures, 'maxCost' | 'reserveTarget' | 'leaseTtlMs'>> = {},
): QuotaFigures {
  return {
    cluster: { ...CLUSTER, ...cluster },
    apps: apps.map((app, index) => ({ ...APP, app: `app${index}`, ...app })),
    maxCost: 1,
    paceMs: 50,
    leaseTtlMs: 1000,
    reserveTarget: 0,
    ...others,
  };
}

export function withoutCluster(given: QuotaFigures): QuotaFigures {
  return { ...given, cluster: undefined };
}

/** The rules that the configuration has to fulfil before a ledger sees it. */
export function isValid({ cluster, apps, maxCost, paceMs }: QuotaFigures): boolean {
  if (cluster === undefined) return true;
  const guaranteed = apps.reduce((sum, app) => sum + app.guaranteed, 0);
  if (guaranteed > cluster.capacity * (1 - cluster.reservedRatio)) return false;
  const depth = clusterDepth(cluster, maxCost, paceMs);
  const depths = apps.map((app) => stockDepth(app.guaranteed, cluster, depth, maxCost, paceMs));
  return depths.reduce((sum, one) => sum + one, 0) <= 0.9 * depth;
}

/** Any quota for a cluster of this capacity, from one app to four of all priorities. */
export function anyFigures(capacity: number, fixed: Partial<QuotaFigures> = {}) {
  const app = fc.record({
    guaranteed: fc.integer({ min: 1, max: Math.floor(capacity / 2) }),
    beyond: fc.nat({ max: capacity * 2 }),
    burstDurationMs: fc.constantFrom(100, 500, 1000, 3000),
    priority: fc.nat({ max: 3 }),
    elastic: fc.boolean(),
  });
  return fc
    .record({
      apps: fc.array(app, { minLength: 1, maxLength: 4 }),
      burstRatio: fc.constantFrom(1, 1.2, 2),
      reservedRatio: fc.constantFrom(0, 0.1, 0.2),
      maxCost: fc.constantFrom(1, 1, 2, Math.max(1, Math.floor(capacity / 5))),
      reserveTarget: fc.constantFrom(0, 0, Math.ceil(capacity / 10), capacity),
    })
    .map(({ apps, burstRatio, reservedRatio, maxCost, reserveTarget }) => ({
      ...figures(
        apps.map(({ beyond, ...own }) => ({
          ...own,
          burst: own.guaranteed + beyond,
        })),
        { capacity, burstRatio, reservedRatio },
        { maxCost, reserveTarget },
      ),
      ...fixed,
    }))
    .filter(isValid);
}

const ACTIONS: fc.WeightedArbitrary<Action>[] = [
  { weight: 12, arbitrary: fc.constant('call') },
  { weight: 8, arbitrary: fc.constant('spend') },
  { weight: 2, arbitrary: fc.constant('put aside') },
  { weight: 2, arbitrary: fc.constant('call, reply lost') },
  { weight: 1, arbitrary: fc.constant('call, request lost') },
  { weight: 1, arbitrary: fc.constant('call, doubled') },
  { weight: 1, arbitrary: fc.constant('repeat an old call') },
  { weight: 1, arbitrary: fc.constant('give up') },
  { weight: 1, arbitrary: fc.constant('leave') },
  { weight: 1, arbitrary: fc.constant('crash') },
];

/** Any history of five nodes; gaps from none to longer than a lease lasts. */
export function anyHistory(
  given: QuotaFigures,
  { apps = given.apps.map((_, index) => index), maxGapMs = 1300, maxLength = 40 } = {},
): fc.Arbitrary<FleetStep[]> {
  const most = given.cluster?.capacity ?? given.apps[0]!.burst;
  const amount = fc.oneof(fc.nat({ max: 5 }), fc.nat({ max: most }), fc.constant(2 * most));
  const step = fc.record({
    gapMicros: fc.oneof(
      { weight: 3, arbitrary: fc.constant(0) },
      { weight: 4, arbitrary: fc.nat({ max: 60_000 }) },
      { weight: 1, arbitrary: fc.nat({ max: maxGapMs * 1000 }) },
    ),
    node: fc.nat({ max: 4 }),
    action: fc.oneof(...ACTIONS),
    app: fc.constantFrom(...apps),
    tokens: amount,
    cost: fc.integer({ min: 1, max: given.maxCost }),
    count: fc.oneof(fc.constant(0), fc.nat({ max: 3 }), fc.nat({ max: most })),
    demand: fc.oneof(fc.nat({ max: most }), fc.nat({ max: 2 * most })),
  });
  return fc.array(step, { minLength: 10, maxLength });
}

export interface Scene {
  readonly given: QuotaFigures;
  readonly history: FleetStep[];
}

export function anyScene(all: fc.Arbitrary<QuotaFigures>): fc.Arbitrary<Scene> {
  return all.chain((given) => anyHistory(given).map((history) => ({ given, history })));
}

/** The most tokens beyond `perSecond × Δ` that moved in any span Δ. */
export function mostBeyond(movements: readonly Movement[], perSecond: number): number {
  let sum = 0;
  let lowest = Infinity;
  let most = 0;
  for (const { atMicros, tokens } of movements) {
    const flowed = (perSecond * (atMicros - movements[0]!.atMicros)) / 1e6;
    lowest = Math.min(lowest, sum - flowed);
    sum += tokens;
    most = Math.max(most, sum - flowed - lowest);
  }
  return most;
}

/** The figures under which every invariant must hold, by what is special about them. */
export const FAMILIES: [name: string, all: fc.Arbitrary<QuotaFigures>][] = [
  ['10 per second', anyFigures(10)],
  ['100 per second', anyFigures(100)],
  ['10,000 per second', anyFigures(10_000)],
  ['a million per second', anyFigures(1_000_000)],
  [
    'one app with 90 of 100',
    fc
      .record({ priority: fc.nat({ max: 3 }), elastic: fc.boolean(), other: fc.nat({ max: 3 }) })
      .map(({ priority, elastic, other }) =>
        figures(
          [
            { guaranteed: 90, burst: 100, priority, elastic },
            { guaranteed: 1, burst: 100, priority: other, elastic: true },
          ],
          { capacity: 100, reservedRatio: 0.05 },
        ),
      ),
  ],
  [
    'costs above what an app has in a second',
    fc.constantFrom(
      figures(
        [
          { guaranteed: 1, burst: 2 },
          { guaranteed: 3, burst: 4, priority: 3, elastic: true },
        ],
        { capacity: 100 },
        { maxCost: 40 },
      ),
      withoutCluster(figures([{ guaranteed: 2, burst: 3 }], {}, { maxCost: 40 })),
    ),
  ],
  ['no cluster', anyFigures(1000).map((given) => withoutCluster(given))],
];
