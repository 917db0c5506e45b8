import { MANY_DENIED } from '../../observability/limited.js';
import { type StoreState } from '../../observability/state.js';
import { type PageFrame } from '../frame.js';
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
  const of = `99 of 100 calls take at most ${ms(p99Ms)}; a decision would wait ${ms(timeoutMs)}`;
  if (p99Ms <= timeoutMs * FAST) return { tone: 'ok', word: 'fast', why: of };
  if (p99Ms <= timeoutMs * SLOW) return { tone: 'ok', word: 'in time', why: of };
  if (p99Ms <= timeoutMs) return { tone: 'warn', word: 'slow', why: of };
  return {
    tone: 'bad',
    word: 'too late',
    why: `1 of 100 calls takes ${ms(p99Ms)}; after ${ms(timeoutMs)} a decision is made without it`,
  };
}

/** One that takes tokens: an app, or a policy where there are none. */
export interface Taker {
  readonly name: string;
  readonly used: number;
  readonly denied: number;
  /** Tokens per second; undefined for policies, which promise nothing. */
  readonly guaranteed?: number;
  readonly ceiling?: number;
  readonly priority?: number;
}

/** More than one in twenty is turned away. */
export const isHot = ({ used, denied }: Taker): boolean =>
  denied > 0.5 && denied / (used + denied) > MANY_DENIED;

/** As much as a box of the flow is wide. */
const LONGEST_PROMISE = 40;

/** `99 of 180 promised · ceiling 320`. */
export function promiseOf({ used, denied, guaranteed, ceiling = 0 }: Taker): string {
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
  const { used, denied, guaranteed = Infinity } = taker;
  if (denied < 0.05) return 'nothing turned away';
  const away = `${count(denied)}/s turned away`;
  if (!isHot(taker)) return `${away} (${percent(denied / (used + denied))})`;
  return used >= guaranteed * 0.95 ? `${away}, promise kept` : away;
}

const freeOf = ({ given, most }: NonNullable<PageFrame['promised']>): number =>
  Math.max(0, most - given);

/** The note that holds for all of them: they have the same tokens to share. */
export function roomNote({
  state: { quota },
  promised,
  unseen,
}: Pick<PageFrame, 'state' | 'promised' | 'unseen'>): string {
  if (quota?.overloaded) return 'not while the cluster is overloaded';
  if (unseen !== null) return 'use is of this node alone now';
  const { given, most } = promised!;
  const isShared = quota!.apps.length > 1 && freeOf(promised!) >= 0.5;
  return `${count(given)} of ${count(most)}/s that can be promised are${isShared ? ': one of these, not all' : ''}`;
}

/** May the limit of an app be raised? All of the answer, in a sentence for each. */
export function roomOf(
  { state: { quota }, promised }: Pick<PageFrame, 'state' | 'promised'>,
  peaks: ReadonlyMap<string, number>,
): { readonly app: string; readonly text: string }[] {
  if (quota?.capacity === undefined || promised === null || quota.overloaded) return [];
  const { capacity } = quota;
  const free = freeOf(promised);
  return quota.apps.map(({ app, used, guaranteed, burst }) => {
    const peak = count(Math.max(used, peaks.get(app) ?? 0));
    const promise =
      free >= 0.5
        ? `its promise may rise from ${count(guaranteed)} to ${count(guaranteed + free)}/s`
        : `its promise of ${count(guaranteed)}/s cannot rise, as all is promised`;
    const ceiling =
      burst < capacity
        ? `its ceiling from ${count(burst)} to ${count(capacity)}/s`
        : `its ceiling of ${count(burst)}/s is the capacity`;
    return {
      app,
      text: `uses ${count(used)}/s, ${peak}/s at its busiest: ${promise}, ${ceiling}.`,
    };
  });
}
