import { countBySpan } from './sliding-span.js';

/** Guarantees are counted per second. */
const WINDOW_SECONDS = 1;
const TICK_SECONDS = 0.1;
/** Shares are kept to one tick, so that much of a window may come before or after it. */
const TO_ONE_TICK = TICK_SECONDS / WINDOW_SECONDS;

/**
 * The part of what an app was sure of, and asked for, that it did not get: the sum over seconds of
 * min(offered, guaranteed) − admitted where that is above 0.
 */
export function deficit(
  offered: readonly number[],
  admitted: readonly number[],
  guaranteed: number,
  seconds: number,
): number {
  const asked = countBySpan(offered, WINDOW_SECONDS, seconds);
  const got = countBySpan(admitted, WINDOW_SECONDS, seconds);
  let [sure, missing] = [0, 0];
  for (const [window, count] of asked.entries()) {
    const least = Math.min(count, guaranteed * WINDOW_SECONDS);
    sure += least;
    missing += Math.max(0, least - got[window]!);
  }
  return sure === 0 ? 0 : missing / sure;
}

/**
 * How late a guarantee is that begins at 0: the n-th request of the first second is due once n have
 * come and n tokens have flowed in, and this is the longest that one was behind that.
 */
export function latenessOfGuarantee(
  offered: readonly number[],
  admitted: readonly number[],
  guaranteed: number,
): number {
  let latest = 0;
  for (const [n, asked] of offered.entries()) {
    const due = Math.max(asked, (n + 1) / guaranteed);
    if (due > WINDOW_SECONDS) break;
    latest = Math.max(latest, (admitted[n] ?? Infinity) - due);
  }
  return latest;
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
