import { countBySpan } from './sliding-span.js';

/** What happens within one tick of the ledger is not told apart. */
const TICK_SECONDS = 0.1;
const WINDOW_SECONDS = 1;
/** Shares are kept to one tick, so that much of a window may come before or after it. */
const TO_ONE_TICK = TICK_SECONDS / WINDOW_SECONDS;

/**
 * The part of what an app was sure of, and asked for, that it did not get: the sum over ticks of
 * min(offered, guaranteed) − admitted where that is above 0.
 */
export function deficit(
  offered: readonly number[],
  admitted: readonly number[],
  guaranteed: number,
  seconds: number,
): number {
  const asked = countBySpan(offered, TICK_SECONDS, seconds);
  const got = countBySpan(admitted, TICK_SECONDS, seconds);
  let [sure, missing] = [0, 0];
  for (const [tick, count] of asked.entries()) {
    const least = Math.min(count, guaranteed * TICK_SECONDS);
    sure += least;
    missing += Math.max(0, least - got[tick]!);
  }
  return sure === 0 ? 0 : missing / sure;
}

/**
 * How long after 0 an app that begins to ask then is behind its guarantee for the last time: from
 * there on it has always had all it asked for, or all that it is sure of.
 */
export function secondsToGuarantee(
  offered: readonly number[],
  admitted: readonly number[],
  guaranteed: number,
): number {
  let last = 0;
  let got = 0;
  for (const [asked, second] of offered.entries()) {
    while (got < admitted.length && admitted[got]! <= second) got++;
    // The request of this very instant may still be on its way.
    const sure = Math.floor(Math.min(asked, guaranteed * second));
    if (got < sure) last = second;
  }
  return last;
}

export interface Party {
  readonly priority: number;
  /** Requests per second. */
  readonly share: number;
  readonly at: readonly number[];
}

/** Windows in which an app had more than its share while a higher priority had less than its own. */
export function inversions(parties: readonly Party[], from: number, to: number): number {
  const counts = parties.map(({ at }) => {
    const since = at.filter((second) => second >= from).map((second) => second - from);
    return countBySpan(since, WINDOW_SECONDS, to - from);
  });
  let found = 0;
  for (let window = 0; window < counts[0]!.length; window++) {
    const part = parties.map(({ share }, i) => counts[i]![window]! / (share * WINDOW_SECONDS));
    const isInverted = parties.some((low, i) =>
      parties.some(
        (high, j) =>
          high.priority < low.priority && part[j]! < 1 - TO_ONE_TICK && part[i]! > 1 + TO_ONE_TICK,
      ),
    );
    if (isInverted) found++;
  }
  return found;
}
