import { type SeriesHistory } from '../observability/series-history.js';

/** The middle of the minutes before. */
export interface Usual {
  /** Denied per second. */
  readonly denied: number;
  /** Denied, as a part of the requests. */
  readonly part: number;
}

const MINUTES = 15;
/** The minute that goes on: what happens now is in it. */
const LATEST = 1;
const FEWEST = 3;

/** What is usual, by the median: a burst of a minute or two does not move it. Null if too few minutes are known. */
export function usualOf({ rate, denied }: Pick<SeriesHistory, 'rate' | 'denied'>): Usual | null {
  const known = rate
    .map((asked, index) => ({ asked: asked ?? 0, denied: denied[index] ?? 0 }))
    .slice(-MINUTES - LATEST, -LATEST)
    .filter(({ asked }) => asked > 0);
  if (known.length < FEWEST) return null;
  return {
    denied: median(known.map((one) => one.denied)),
    part: median(known.map((one) => one.denied / one.asked)),
  };
}

const median = (values: readonly number[]): number =>
  [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)]!;
