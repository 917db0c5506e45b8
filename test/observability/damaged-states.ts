import { type FleetState } from '../../lib/observability/state.js';
import { quietFleet, seriesState } from './snapshots.js';

const VALUES = [null, undefined, -1, 0, 1e300, '', 'x', true, [], {}, [null], [{}]];

/** A fleet in which everything that can be told is told. */
export const troubledFleet = (): FleetState =>
  quietFleet({
    config: { revision: 42, behind: 1, heard: 11 },
    store: { isUp: true, awayNodes: 1, sinceMs: 1_799_999_000_000 },
    quota: {
      ...{ capacity: 500, demand: 520, stock: 10, depth: 100, outstanding: 12, overloaded: true },
      apps: [
        {
          ...{ app: 'search', guaranteed: 80, burst: 160, priority: 2, used: 89, denied: 22 },
          ...{ deniedByCluster: 20, demand: 110, outstanding: 3, nodes: 3, modes: { batch: 3 } },
        },
      ],
    },
    series: [
      { ...seriesState('total', 600, 50, [1, 2, 3, 4]), p50Ms: 3, p99Ms: 9 },
      { ...seriesState('store', 10, 0), p99Ms: 2 },
      { ...seriesState('app:search', 110, 22), deniedInMinute: 1300, deniedForMs: 65_000 },
      { ...seriesState('resource:db', 40, 0, [0, 2, 0, 1]), degradedForMs: 5000 },
    ],
    deniedKeys: [
      { policy: 'login', key: '1a2b', denied: 30, source: 'fallback', failureMode: 'local' },
    ],
    hotValues: [{ policy: 'catalog', key: '9f8e', perPeriod: 12 }],
    resources: [{ resource: 'db', breaker: 'open', openNodes: 1, phase: 'ramp', percent: 30 }],
    line: { standing: true, waiting: 4 },
    learning: { minutes: 1, needed: 3 },
    alerts: [
      {
        ...{ rule: 'denialRise', series: 'app:search', state: 'firing', severity: 'warning' },
        ...{ text: 'app:search: 20 %', value: 0.2, threshold: 0.1, isTrend: false, muted: false },
        ...{ sinceMs: 1_799_999_900_000, fingerprint: 'f', nodeId: 'a', cluster: 'shop' },
      },
    ],
    marks: [
      { atMs: 1_799_990_000_000, kind: 'overload', text: 'overload begins' },
      { atMs: 1_799_990_000_000, kind: 'breaker', text: 'breaker of db opens' },
    ],
    nodes: [
      {
        ...{ node: 'api-1', rate: 400, denied: 3, revision: 42, storeIsUp: true, isSilent: false },
        ...{ apps: [{ app: 'search', used: 89 }], open: ['db'] },
      },
      { node: 'api-2', rate: 0, denied: 0, revision: 41, storeIsUp: false, isSilent: true },
    ],
  });

/** Texts as they may be on the board, each with one part of the fleet that is another than it should be. */
export function* damagedStates(): Generator<{ readonly path: string; readonly text: string }> {
  const whole = JSON.parse(JSON.stringify({ v: 1, ...troubledFleet() })) as object;
  // What comes first in the verdict hides the rest.
  for (const calm of [{}, { store: undefined }, { store: undefined, quota: undefined }]) {
    for (const path of pathsOf(whole)) {
      for (const value of VALUES) {
        const copy = { ...structuredClone(whole), ...calm };
        if (!put(copy, path, value)) continue;
        yield { path: `${path.join('.')} = ${JSON.stringify(value)}`, text: JSON.stringify(copy) };
      }
    }
  }
}

function pathsOf(of: object): string[][] {
  return Object.entries(of).flatMap(([name, part]: [string, unknown]) => [
    [name],
    ...(typeof part === 'object' && part !== null
      ? pathsOf(part).map((path) => [name, ...path])
      : []),
  ]);
}

function put(into: object, path: readonly string[], value: unknown): boolean {
  let at: unknown = into;
  for (const name of path.slice(0, -1)) at = (at as Record<string, unknown> | undefined)?.[name];
  if (typeof at !== 'object' || at === null) return false;
  (at as Record<string, unknown>)[path.at(-1)!] = value;
  return true;
}
