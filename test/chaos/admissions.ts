import { FIGURES_PER_ADMISSION, SOURCES } from './process/protocol.js';

/**
 * A request that was admitted at some instant from `from`, when it was asked for, to `to`, when the
 * answer was here. On a clock that all processes share.
 *
 * When between the two its tokens were spent cannot be seen from outside: a process may lose the
 * processor, or be stopped, right before or right after. So a request counts for a span only if it
 * lies within it from end to end. That may count too few, never too many: whatever goes beyond a
 * bound by this count really does.
 */
export interface Admission {
  readonly from: number;
  readonly to: number;
  readonly cost: number;
  readonly app: string;
  readonly source: (typeof SOURCES)[number];
}

/** The admissions in a report of a process. */
export function admissionsOf(figures: ArrayLike<number>, apps: readonly string[]): Admission[] {
  const made: Admission[] = [];
  for (let at = 0; at < figures.length; at += FIGURES_PER_ADMISSION) {
    const [from, to, cost] = [figures[at]!, figures[at + 1]!, figures[at + 2]!];
    const [app, source] = [apps[figures[at + 3]!]!, SOURCES[figures[at + 4]!]!];
    made.push({ from, to, cost, app, source });
  }
  return made;
}

/** Tokens admitted within a span. */
export function tokensWithin(all: readonly Admission[], from: number, to: number): number {
  let tokens = 0;
  for (const one of all) if (one.from >= from && one.to <= to) tokens += one.cost;
  return tokens;
}

/**
 * Tokens per second in the middle one of `parts` equal parts of a span: one in which the machine had
 * no time for these processes says nothing about them.
 */
export function usualRate(all: readonly Admission[], from: number, to: number, parts = 7): number {
  const micros = (to - from) / parts;
  const rates = Array.from({ length: parts }, (_, i) => {
    return (tokensWithin(all, from + i * micros, from + (i + 1) * micros) * 1_000_000) / micros;
  });
  return rates.sort((a, b) => a - b)[Math.floor(parts / 2)]!;
}

/**
 * The most by which the tokens admitted in any span Δ, short or long, exceed `perSecond × Δ`. This
 * is what a bucket of that rate needs as its depth to have admitted all of it.
 */
export function deepestBurst(all: readonly Admission[], perSecond: number): number {
  const byStart = [...all].sort((a, b) => a.from - b.from);
  const places = new Map(byStart.map((one, place) => [one, place]));
  const origin = byStart[0]?.from ?? 0;
  const flowed = (micros: number): number => ((micros - origin) * perSecond) / 1_000_000;
  const spans = new BestSuffix(all.length);
  let deepest = 0;
  for (const one of [...all].sort((a, b) => a.to - b.to)) {
    spans.put(places.get(one)!, flowed(one.from), one.cost);
    deepest = Math.max(deepest, spans.best - flowed(one.to));
  }
  return deepest;
}

/** Keeps the maximum over all places of a place's head start plus the sum of all from there on. */
class BestSuffix {
  private readonly size: number;
  private readonly sums: Float64Array;
  private readonly bests: Float64Array;

  constructor(places: number) {
    this.size = 2 ** Math.ceil(Math.log2(Math.max(1, places)));
    this.sums = new Float64Array(2 * this.size);
    this.bests = new Float64Array(2 * this.size).fill(-Infinity);
  }

  get best(): number {
    return this.bests[1]!;
  }

  put(place: number, headStart: number, amount: number): void {
    const { sums, bests } = this;
    let at = this.size + place;
    sums[at] = amount;
    bests[at] = headStart + amount;
    for (at >>= 1; at >= 1; at >>= 1) {
      const [left, right] = [2 * at, 2 * at + 1];
      sums[at] = sums[left]! + sums[right]!;
      bests[at] = Math.max(bests[left]! + sums[right]!, bests[right]!);
    }
  }
}
