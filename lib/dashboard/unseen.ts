import { OFFLINE_PART } from '../local/offline-share.js';
import { figure } from '../observability/figures.js';
import {
  type FleetNode,
  type FleetState,
  type MonitorState,
  type WatchedState,
} from '../observability/state.js';
import { timeOf, type Verdict } from '../observability/verdict.js';
import { type PageFrame, type UnseenNodes } from './frame.js';

/** Every node writes more often than that; one that has not by then is silent or gone, as the fleet tells. */
const REJOIN_MS = 30_000;

/** Whether Redis answers again, and a node that was there before has not been merged since. */
export function isRejoining(
  own: MonitorState,
  before: FleetState | undefined,
  merged: FleetState | undefined,
  nowMs: number,
): boolean {
  const { isUp, sinceMs } = own.store ?? {};
  if (isUp !== true || sinceMs === undefined || nowMs - sinceMs > REJOIN_MS) return false;
  if (merged === undefined) return true;
  // What was merged before Redis went away may still be there.
  const told = merged.atMs < sinceMs ? [] : merged.nodes.filter(({ isSilent }) => !isSilent);
  return othersIn(before, own).some(({ node }) => !told.some((one) => one.node === node));
}

/** One node alone cannot say that all is calm; what is wrong with it is told all the same. */
export function rejoiningVerdict(alone: Verdict, { count }: UnseenNodes): Verdict {
  if (alone.level === 'warning' || alone.level === 'bad') return alone;
  const others =
    count === 1
      ? 'the other node has not told its figures yet'
      : `the other ${figure(count)} nodes have not told their figures yet`;
  return {
    ...{ kind: 'store', level: 'info', text: `Redis answers again; ${others}.`, series: 'store' },
    ...{ why: 'each node tells them every few seconds', sinceMs: undefined },
  };
}

const othersIn = (seen: FleetState | undefined, { nodeId }: MonitorState): FleetNode[] =>
  (seen?.nodes ?? []).filter(({ node, isSilent }) => node !== nodeId && !isSilent);

/** The nodes that this one cannot see while Redis is away, as they were seen last; null where there are none. */
export function unseenBy(own: MonitorState, seen: FleetState | undefined): UnseenNodes | null {
  const others = othersIn(seen, own);
  const count = seen === undefined ? own.nodeCount - 1 : others.length;
  if (count <= 0) return null;
  const nodes = others.map(({ apps: _apps, open: _open, ...node }): FleetNode => node);
  return { count, nodes, seenMs: seen?.atMs ?? null, said: saidOf(own, seen, count) };
}

/** What is known of the total: of now that of this node, of all nodes what they did, and the most that they may do. */
function saidOf(own: MonitorState, seen: FleetState | undefined, count: number): string {
  const others = count === 1 ? '1 other node' : `${figure(count)} other nodes`;
  const isBack = own.store?.isUp === true;
  const missing = isBack
    ? `${others} ${count === 1 ? 'has' : 'have'} told nothing since Redis is back`
    : `${others} cannot be seen until Redis is back`;
  const now = `All figures are of this node alone, which decides ${rateOf(own)}: ${missing}.`;
  const before =
    seen === undefined
      ? ''
      : ` All ${figure(count + 1)} nodes together decided ${rateOf(seen)} when they were last seen, at ${timeOf(seen.atMs, own.atMs)}.`;
  const apps = own.quota?.apps ?? [];
  if (apps.length === 0 || isBack) return now + before;
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
