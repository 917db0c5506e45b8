import { type FailureMode } from '../limiter/policy-options.js';
import { apart, figure, limitText } from './figures.js';
import { type AppState, type ShownKey, type WatchedState } from './state.js';

/** An app or a key that is turned away. */
export interface ShownDenial {
  readonly kind: 'app' | 'key';
  /** The app, or the key as it may be shown. */
  readonly who: string;
  /** The policy that limits the key; undefined of an app, which has a quota. */
  readonly policy: string | undefined;
  /** How often in the last minute; of a key about. */
  readonly denied: number;
  /** In one clause, without any name. */
  readonly why: string;
}

/** A policy's limit, and what happens while the store is away. */
export interface PolicyLimit {
  /** Tokens, and how long all of them take to come back. */
  readonly capacity: number;
  readonly windowMs: number;
  readonly failureMode?: FailureMode | undefined;
}

/** Why somebody is turned away, by the tier that decided. */
export type Cause =
  | {
      readonly tier: 'cluster';
      readonly demand: number | undefined;
      readonly capacity: number;
      /** All together asked for too much until a moment ago. */
      readonly isOver?: boolean;
      /** All together did not ask for too much, but nothing was left beyond what others are sure of. */
      readonly isReserved?: boolean;
    }
  | {
      readonly tier: 'app';
      readonly of: 'guarantee' | 'ceiling';
      readonly limit: number;
      /** On average it asks for less. */
      readonly isInBursts: boolean;
    }
  | { readonly tier: 'policy'; readonly limit: PolicyLimit | undefined }
  | {
      readonly tier: 'fallback';
      readonly node: 'this node' | 'each node';
      /** Of the policy; undefined if it is not known. */
      readonly mode: FailureMode | undefined;
      /** The limit that it has a share of, where that is the mode. */
      readonly of: string;
      /** The store is back. */
      readonly isOver: boolean;
    };

/** The cause in one clause. */
export function why(cause: Cause): string {
  switch (cause.tier) {
    case 'cluster':
      if (cause.isReserved) {
        return `the capacity of ${figure(cause.capacity)}/s had nothing left to lend`;
      }
      if (cause.isOver) {
        return `all apps together asked for about all of the capacity of ${figure(cause.capacity)}/s, or more, until a moment ago`;
      }
      return cause.demand === undefined
        ? `all apps together ask for about all of the capacity of ${figure(cause.capacity)}/s, or more`
        : `all apps together ask for ${apart(figure, cause.demand, cause.capacity).join('/s of ')}/s`;
    case 'app':
      return `${cause.isInBursts ? 'in bursts ' : ''}over its ${cause.of} of ${figure(cause.limit)}/s`;
    case 'policy': {
      const { limit } = cause;
      const most = limit && limitText(limit.capacity, limit.windowMs);
      return `more than ${most ?? 'its policy allows'} by this key`;
    }
    case 'fallback': {
      const { isOver, node, mode, of } = cause;
      const away = `Redis ${isOver ? 'was' : 'is'} away`;
      if (mode === 'closed') return `${away}, and without it the policy lets nobody pass`;
      return mode === 'local'
        ? `${away}; ${node} ${isOver ? 'had' : 'has'} a share of ${of}`
        : `${away}; ${node} ${isOver ? 'decided' : 'decides'} by itself`;
    }
  }
}

const FEWEST_DENIED = 0.05;
const SECONDS_OF_MINUTE = 60;
const MOST_LIMITED = 20;

/** Those who are turned away most. Pure: page, command line and verdict tell by the same rule. */
export function limitedOf(
  state: WatchedState,
  limitOf: (policy: string) => PolicyLimit | undefined,
): ShownDenial[] {
  const apps = (state.quota?.apps ?? [])
    .map((one): ShownDenial => {
      const { app: who, denied: perSecond } = one;
      const isNow = perSecond >= FEWEST_DENIED;
      const series = state.series.find(({ name }) => name === `app:${who}`);
      // Those who merge by an older version do not tell it.
      const denied = Math.round(
        series?.deniedInMinute ?? (isNow ? perSecond * SECONDS_OF_MINUTE : 0),
      );
      // Of a minute ago the causes are not known any more.
      const cause = isNow ? why(causeOfApp(one, state)) : 'until a moment ago';
      return { kind: 'app', who, policy: undefined, denied, why: cause };
    })
    .filter(({ denied }) => denied > 0);
  return [...apps, ...limitedKeysOf(state, limitOf)]
    .sort((one, other) => other.denied - one.denied)
    .slice(0, MOST_LIMITED);
}

/** The keys alone, all that are known. */
export function limitedKeysOf(
  state: WatchedState,
  limitOf: (policy: string) => PolicyLimit | undefined,
): ShownDenial[] {
  return state.deniedKeys.map((one) => {
    const { policy, key, denied } = one;
    const cause = why(causeOfKey(one, limitOf(policy), state));
    return { kind: 'key', who: key, policy, denied, why: cause };
  });
}

/**
 * Without the store an app lives on shares of its guarantee. Above its ceiling it never gets; above its guarantee it lives
 * on what others leave, which is nothing once all together ask for too much. Nodes count which of the two it was; of
 * those that do not say, it is inferred.
 */
export function causeOfApp(app: AppState, state: WatchedState): Cause {
  const { guaranteed, burst, modes, denied, deniedByCluster } = app;
  const { capacity, demand, overloaded } = state.quota!;
  const asked = askedBy(app);
  const nodes = Object.values(modes).reduce((sum, one) => sum + one, 0);
  if ((modes.offline ?? 0) * 2 > nodes) {
    return withoutStore('local', `its guarantee of ${figure(guaranteed)}/s`, state);
  }
  const isAtCeiling = asked >= burst * AT_CEILING;
  const isByCluster =
    deniedByCluster === undefined ? overloaded && !isAtCeiling : deniedByCluster * 2 > denied;
  if (isByCluster && capacity !== undefined) {
    if (overloaded) return { tier: 'cluster', demand, capacity };
    const isOver = wasOverloaded(state);
    return { tier: 'cluster', demand, capacity, isOver, isReserved: !isOver };
  }
  if (isAtCeiling) return { tier: 'app', of: 'ceiling', limit: burst, isInBursts: false };
  return { tier: 'app', of: 'guarantee', limit: guaranteed, isInBursts: asked < guaranteed };
}

/**
 * Whether the capacity itself is short in an overload. What apps ask for beyond their own ceilings is part of the demand
 * that makes one, but they would not get it on an idle cluster either.
 */
export function isShort(state: WatchedState): boolean {
  if (state.quota?.overloaded !== true) return false;
  const losers = state.quota.apps.filter(({ denied }) => denied > 0);
  return losers.length === 0 || losers.some((one) => causeOfApp(one, state).tier === 'cluster');
}

/** Demand is an estimate. */
const AT_CEILING = 0.95;

/** Tokens per second: as the store counts them, which is late in a rush, or in the time that denials are of. */
export const askedBy = ({ demand = 0, used, denied }: AppState): number =>
  Math.max(demand, used + denied);

/** Denials are of ten seconds, up to a look at the fleet that may be five seconds old. */
const LATELY_MS = 15_000;

function wasOverloaded({ marks, atMs }: WatchedState): boolean {
  return marks.some((one) => one.kind === 'overload' && atMs - one.atMs <= LATELY_MS);
}

function causeOfKey(
  { source, failureMode }: ShownKey,
  limit: PolicyLimit | undefined,
  state: WatchedState,
): Cause {
  if (source !== 'fallback') return { tier: 'policy', limit };
  const figures = limit && ` of ${limitText(limit.capacity, limit.windowMs)}`;
  // The node that denied knows best: this one may have no such policy, or another configuration.
  return withoutStore(failureMode ?? limit?.failureMode, `the limit${figures ?? ''}`, state);
}

function withoutStore(mode: FailureMode | undefined, of: string, state: WatchedState): Cause {
  // Only a fleet has nodes.
  const node = 'nodes' in state ? 'each node' : 'this node';
  return { tier: 'fallback', mode, of, node, isOver: state.store?.awayNodes === 0 };
}
