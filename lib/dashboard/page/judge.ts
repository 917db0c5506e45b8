import {
  MANY_DENIED,
  type FleetNode,
  type SeriesState,
  type StoreState,
} from '../../observability/state.js';
import { type Usual } from '../usual.js';
import { count, ms, percent, plural } from './format.js';

/** A figure in words: whether it is well, and by what. */
export interface Judgement {
  readonly tone: 'ok' | 'warn' | 'bad';
  readonly word: string;
  readonly why: string;
}

/** Of what is usual twice as much is not; below this part nobody needs to look. */
const FEW_DENIED = 0.01;

/** Denials as a part of all, beside what is usual; beside an alert of them nothing is said to be so. */
export function denialsOf(
  rate: number,
  denied: number,
  usual: Usual | null,
  isAlarmed = false,
): Judgement {
  const part = rate > 0 ? denied / rate : 0;
  if (usual === null) {
    const tone = part > MANY_DENIED ? 'bad' : 'ok';
    return { tone, word: `${percent(part)} of all`, why: 'it is not known yet what is usual' };
  }
  const isMore = part > Math.max(FEW_DENIED, 2 * usual.part);
  const isLess = usual.part > FEW_DENIED && part < usual.part / 2;
  const usually = `usually ${percent(usual.part)}`;
  return {
    tone: isMore ? 'bad' : 'ok',
    word: `${percent(part)}, ${isMore || isLess || isAlarmed ? usually : 'as usual'}`,
    why: `${usually}, ${count(usual.denied)}/s`,
  };
}

/** The colour of a part that is denied, of its bar and of its figure. */
export const shareTone = (part: number): 'deny' | 'degraded' | '' =>
  part > MANY_DENIED ? 'deny' : part > 0.005 ? 'degraded' : '';

/** Those first that turn most requests away in a second; of others the busiest. */
export const byDenials = (
  one: Pick<SeriesState, 'rate' | 'denied'>,
  other: Pick<SeriesState, 'rate' | 'denied'>,
): number => other.denied - one.denied || other.rate - one.rate;

/** Of the time that a decision waits: within the one part it is fast, above the other it is slow. */
const FAST = 0.25;
const SLOW = 0.5;

interface StoreFigures {
  readonly store: StoreState;
  readonly p99Ms: number | null | undefined;
  /** Per second. */
  readonly errors: number;
  /** How long a decision waits for it. */
  readonly timeoutMs: number;
}

export function storeJudgement({ store, p99Ms, errors, timeoutMs }: StoreFigures): Judgement {
  if (!store.isUp) return { tone: 'bad', word: 'away', why: 'no call is answered' };
  if (store.awayNodes > 0) {
    const word = `away for ${plural(store.awayNodes, 'node')}`;
    return { tone: 'bad', word, why: 'the others reach it' };
  }
  if (errors >= 0.05) {
    return { tone: 'warn', word: 'some calls fail', why: `${count(errors)} a second fail` };
  }
  if (p99Ms === null || p99Ms === undefined) {
    return { tone: 'ok', word: '', why: 'there were too few calls to say how fast' };
  }
  const of = `99 of 100 calls take at most ${ms(p99Ms)}; a decision waits at most ${ms(timeoutMs)} for Redis`;
  if (p99Ms <= timeoutMs * FAST) return { tone: 'ok', word: 'fast', why: of };
  if (p99Ms <= timeoutMs * SLOW) return { tone: 'ok', word: 'in time', why: of };
  if (p99Ms <= timeoutMs) return { tone: 'warn', word: 'slow', why: of };
  return {
    tone: 'bad',
    word: 'too late',
    why: `1 of 100 calls takes ${ms(p99Ms)}; after ${ms(timeoutMs)} a decision is made without it`,
  };
}

/**
 * Calls are counted when they begin and errors when calls end: after a fall of the rate more calls may have ended than
 * begun. Undefined where there were none.
 */
export function errorPart({
  rate,
  denied,
  errors,
}: Pick<SeriesState, 'rate' | 'denied' | 'errors'>): number | undefined {
  const calls = Math.max(rate, denied + errors);
  return calls > 0 ? errors / calls : undefined;
}

/** The worst of a node: the tone of it, and a few words; none where it is well. */
export function nodeState(
  { isSilent, storeIsUp, open, revision: own }: FleetNode,
  revision: number,
): readonly [tone: '' | 'off' | 'odd', word: string] {
  if (isSilent) return ['off', 'silent'];
  if (!storeIsUp) return ['odd', 'by itself'];
  if (open) return ['odd', 'breaker open'];
  return own < revision ? ['odd', `rev ${own}`] : ['', ''];
}

const TONES = ['', 'odd', 'off'] as const;

/** 0 of a node that is well; the silent are the worst. */
export const wrongness = (node: FleetNode, revision: number): number =>
  TONES.indexOf(nodeState(node, revision)[0]);

/** One that takes tokens: an app, or a policy where there are none. */
export interface Taker {
  readonly name: string;
  readonly used: number;
  readonly denied: number;
  /** Tokens per second; undefined for policies, which promise nothing. */
  readonly guaranteed?: number;
  readonly ceiling?: number;
  readonly priority?: number;
  /** Tokens per second of this node, while Redis is away: then the figures are of it alone. */
  readonly share?: number | undefined;
}

/** More than one in twenty is turned away. */
export const isHot = ({ used, denied }: Taker): boolean =>
  denied > 0.5 && denied / (used + denied) > MANY_DENIED;

/** As much as a box of the flow is wide. */
const LONGEST_PROMISE = 40;

/** `99 of 180 promised · ceiling 320`, `33 of this node's share of 54`. */
export function promiseOf({ used, denied, guaranteed, ceiling = 0, share }: Taker): string {
  if (share !== undefined) return `${count(used)} of this node's share of ${count(share)}`;
  if (guaranteed === undefined) return `${count(used + denied)}/s asked for`;
  const lent = used - guaranteed;
  const promised =
    lent >= 0.5
      ? `${count(guaranteed)} promised + ${count(lent)} lent`
      : `${count(used)} of ${count(guaranteed)} promised`;
  const all = `${promised} · ceiling ${count(ceiling)}`;
  return all.length > LONGEST_PROMISE ? promised : all;
}

/** `nothing turned away`, `443/s turned away, promise kept`. */
export function lossOf(taker: Taker): string {
  const { used, denied, guaranteed = Infinity, share } = taker;
  if (denied < 0.05) return 'nothing turned away';
  const away = `${count(denied)}/s turned away`;
  if (!isHot(taker)) return `${away} (${percent(denied / (used + denied))})`;
  return share === undefined && used >= guaranteed * 0.95 ? `${away}, promise kept` : away;
}

const MINUTES_NEEDED = 180;

/** Is there room for all apps together? By the busiest minute, and of how many minutes that is known. */
export function capacityText(
  minutes: number,
  busiest: number,
  capacity: number | undefined,
  isOverloaded: boolean,
): string {
  const of = capacity === undefined ? '' : ` of ${count(capacity)}`;
  const used = `busiest minute used ${count(busiest)}${of}/s`;
  const room = isOverloaded
    ? ', but just now about all of the capacity or more is asked for'
    : capacity === undefined
      ? ''
      : roomText(capacity - busiest, capacity);
  if (minutes >= MINUTES_NEEDED) return `The ${used}${room}.`;
  const learning = `Learning: ${minutes} of ${MINUTES_NEEDED} minutes known`;
  return minutes === 0 ? `${learning}.` : `${learning}; so far the ${used}${room}.`;
}

function roomText(left: number, capacity: number): string {
  if (left < 0.5) return ': there is no room';
  return `: there is room for ${left < capacity / 10 ? 'only ' : ''}${count(left)}/s`;
}
