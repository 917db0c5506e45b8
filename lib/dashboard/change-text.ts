import { type ConfigDiff } from '../config/document/diff.js';
import { type PastRevision } from '../config/rate-limit-config.js';
import { figure } from '../observability/figures.js';
import { onLatest, type WatchedState } from '../observability/state.js';
import { type RevisionKind } from '../stores/config-store.js';
import { type ShownChange } from './frame.js';

/** As many as a reader takes in, and as there is room for; the history of the page has all. */
const MOST_CHANGES = 12;
const LONGEST_TEXT = 480;
const LONGEST_VALUE = 24;
const NEWS_MS = 120_000;

/** Fields of an app, as the page calls them. */
const APP_FIELDS: Readonly<Record<string, string>> = {
  ...{ guaranteed: 'promised', burst: 'ceiling', priority: 'priority' },
};

/**
 * Where a revision that holds here is in force: `on all nodes`, `on 2 of 3 nodes`; empty where there is none. The others are
 * known by what was merged last, which may be of the revision before, or after.
 */
export function reachedBy(state: WatchedState, revision: number, isAlone: boolean): string {
  const { store, config, nodeCount } = state;
  if (revision === 0) return '';
  if (store === undefined) return 'here';
  if (isAlone) return 'here, not known of others';
  if (nodeCount === 1) return 'here';
  const merged = config?.revision ?? 0;
  if (merged < revision) return 'here, not yet known of the others';
  const { on, silent } = onLatest(state);
  const rest = silent === 0 ? '' : `, ${silent} ${silent === 1 ? 'is' : 'are'} silent`;
  const there = on === nodeCount ? 'on all nodes' : `on ${on} of ${nodeCount} nodes${rest}`;
  return merged === revision ? there : `here; revision ${merged} is ${there}`;
}

/** Who has just changed something looks for what it does, and whether all have it. */
export function newsOf(
  change: ShownChange | null,
  { config }: WatchedState,
  reached: string,
  nowMs: number,
): string {
  if (change === null || change.atMs === null || change.revision <= 1) return '';
  if (change.isEmpty === true) return '';
  // A later one is on its way here: then this one is no news.
  if (nowMs - change.atMs > NEWS_MS || (config?.revision ?? 0) > change.revision) return '';
  const by = change.by === null ? '' : ` by ${change.by}`;
  return `Revision ${change.revision}${by} is in force ${reached}: ${change.told}.`;
}

/** The changes of a revision in one line; the revisions before it tell where a rollback went. */
export function changeText(
  { revision, kind, hash, diff }: PastRevision,
  earlier: readonly PastRevision[],
): string {
  if (revision === 1) return `the first, from the ${kind}`;
  const changes = diff === undefined ? '' : changesText(diff);
  if (kind !== 'rollback') return changes || (WAITING[kind] ?? kind);
  const to = earlier.find((one) => one.hash === hash && one.revision < revision);
  const told = to === undefined ? 'rollback' : `rollback to revision ${to.revision}`;
  return changes === '' ? told : `${told}: ${changes}`;
}

/** Kinds of revisions that change only what waits. */
const WAITING: Partial<Record<RevisionKind, string>> = {
  stage: 'an update waits for its time',
  cancel: 'an update that waited is cancelled',
  drop: 'an update that waited did not fit, and is dropped',
};

/** Whether all that holds is as it was before the revision. */
export const changesNothing = ({ diff }: PastRevision): boolean =>
  diff !== undefined && changesText(diff) === '';

/** `search promised 100 → 140, …`: all of them, or as many as there is room for and how many more there are. */
export function changesText({ changed, added, removed }: ConfigDiff): string {
  const all = [
    ...changed.map(({ path, before, after }) => fieldText(path, before, after)),
    ...added.map(({ path, after }) => fieldText(path, undefined, after)),
    ...removed.map(({ path, before }) => fieldText(path, before, undefined)),
  ];
  let count = Math.min(all.length, MOST_CHANGES);
  const told = (): string => all.slice(0, count).join(', ');
  while (count > 1 && told().length > LONGEST_TEXT) count--;
  return all.length > count ? `${told()} and ${all.length - count} more` : told();
}

function fieldText(path: string, before: unknown, after: unknown): string {
  const name = nameOf(path);
  const isWhole = [before, after].some((one) => typeof one === 'object');
  if (!isWhole) return `${name} ${valueText(path, before)} → ${valueText(path, after)}`;
  return `${name} ${before === undefined ? 'added' : after === undefined ? 'removed' : 'changed'}`;
}

function nameOf(path: string): string {
  const [, app, field = ''] = /^apps\.([^.]+)\.(\w+)$/.exec(path) ?? [];
  if (app !== undefined) return `${app} ${APP_FIELDS[field] ?? field}`;
  return path.replace(/^(?:apps|policies|cluster)\./, '').replaceAll('.', ' ');
}

function valueText(path: string, value: unknown): string {
  if (value === undefined) return path === 'profile' ? 'normal' : 'not set';
  if (typeof value === 'number') return figure(value);
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE - 1)}…` : text;
}
