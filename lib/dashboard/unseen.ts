import { OFFLINE_PART } from '../local/offline-share.js';
import { figure } from '../observability/figures.js';
import {
  type FleetNode,
  type FleetState,
  type MonitorState,
  type WatchedState,
} from '../observability/state.js';
import { timeOf } from '../observability/verdict.js';
import { type PageFrame, type UnseenNodes } from './frame.js';

/** The nodes that this one cannot see while Redis is away, as they were seen last; null where there are none. */
export function unseenBy(own: MonitorState, seen: FleetState | undefined): UnseenNodes | null {
  const others = (seen?.nodes ?? []).filter((one) => one.node !== own.nodeId && !one.isSilent);
  const count = seen === undefined ? own.nodeCount - 1 : others.length;
  if (count <= 0) return null;
  const nodes = others.map(({ apps: _apps, open: _open, ...node }): FleetNode => node);
  return { count, nodes, seenMs: seen?.atMs ?? null, said: saidOf(own, seen, count) };
}

/** What is known of the total: of now that of this node, of all nodes what they did, and the most that they may do. */
function saidOf(own: MonitorState, seen: FleetState | undefined, count: number): string {
  const others = count === 1 ? '1 other node' : `${figure(count)} other nodes`;
  const now = `All figures are of this node alone, which decides ${rateOf(own)}: ${others} cannot be seen until Redis is back.`;
  const before =
    seen === undefined
      ? ''
      : ` All ${figure(count + 1)} nodes together decided ${rateOf(seen)} when they were last seen, at ${timeOf(seen.atMs)}.`;
  const apps = own.quota?.apps ?? [];
  if (apps.length === 0) return now + before;
  const most = apps.reduce((sum, { guaranteed }) => sum + guaranteed * OFFLINE_PART, 0);
  return `${now}${before} Their shares together allow apps ${figure(most)} tokens/s at most.`;
}

const rateOf = ({ series }: WatchedState): string =>
  `${figure(series.find(({ name }) => name === 'total')?.rate ?? 0)}/s`;

/** The guarantees of the cluster say nothing about one process that is on its own. */
export function sharesOf(quota: WatchedState['quota']): PageFrame['shares'] {
  const apps = (quota?.apps ?? []).map(({ app, guaranteed, nodes }) => {
    return [app, (guaranteed * OFFLINE_PART) / Math.max(1, nodes ?? 1)] as const;
  });
  return Object.fromEntries(apps);
}
