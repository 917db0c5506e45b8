import { type FleetContext } from '../../lib/observability/fleet/fleet.js';
import { type NodeSeries, type NodeSnapshot } from '../../lib/observability/fleet/snapshot.js';
import { noCounts } from '../../lib/observability/series.js';
import { type FleetState } from '../../lib/observability/state.js';

export const series = (
  kind: NodeSeries['kind'],
  name: string,
  count: number,
  more: Partial<NodeSeries> = {},
): NodeSeries => ({
  ...{ kind, name, times: undefined },
  counts: { ...noCounts(), count, denied: Math.floor(count / 10) },
  ...more,
});

/** The snapshot of a node that is well. */
export const snapshot = (
  node: string,
  all: readonly NodeSeries[],
  more: Partial<NodeSnapshot> = {},
): NodeSnapshot => ({
  ...{ node, incarnation: 'i', atMs: undefined, revision: 4, storeIsUp: true, series: all },
  ...{ deniedKeys: [], hotValues: [] },
  ...{ overloaded: undefined, line: undefined, modes: [], resources: [], denials: [] },
  ...more,
});

export const nothingElse = (): FleetContext => ({
  ...{ cluster: 'shop', quota: undefined, alerts: [], marks: [], store: undefined },
});

/** A fleet where all is quiet. */
export const quietFleet = (more: Partial<FleetState> = {}): FleetState => ({
  ...nothingElse(),
  ...{ atMs: 1_800_000_000_000, leader: 'a', isShared: true, nodeCount: 12, nodes: [] },
  series: [seriesState('total', 46_000, 92), seriesState('store', 100, 0)],
  ...{ deniedKeys: [], resources: [], line: undefined, learning: undefined },
  ...{ config: { revision: 42, behind: 0 }, damaged: 0, otherVersions: 0 },
  ...more,
});

export const seriesState = (
  name: string,
  rate: number,
  denied: number,
  degraded: FleetState['series'][number]['degraded'] = [0, 0, 0, 0],
): FleetState['series'][number] => ({
  ...{ name, rate, denied, degraded, errors: 0, used: 0, p50Ms: undefined, p99Ms: undefined },
});
