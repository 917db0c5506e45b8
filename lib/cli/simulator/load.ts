import { START_MICROS, type VirtualTime } from './engine/virtual-time.js';

/** Rates are looked at this often; arrivals have no memory, so that drawing anew changes nothing. */
const LOOK_MICROS = 10_000;

/** The requests of callers, and the nodes at which they arrive. */
export interface Load {
  /** Requests per second of each app, at a second of the run. */
  rates(second: number): readonly number[];
  /** The slot that a request goes to; `draw` is a random number from 0 up to 1. */
  slot(second: number, draw: number): number;
}

export type Placement = Load['slot'];
export type Rates = Load['rates'];

export function even(slots: number): Placement {
  return (_, draw) => Math.floor(draw * slots);
}

/** The node at place k of the ranking gets in proportion to 1 / kˢ. */
export function zipf(slots: number, exponent = 1.2): Placement {
  const upTo = cumulative(Array.from({ length: slots }, (_, i) => (i + 1) ** -exponent));
  return (_, draw) => firstAbove(upTo, draw);
}

/** One slot gets `part` of everything, and it is another one every `seconds`. */
export function movingHotspot(slots: number, seconds: number, part: number): Placement {
  return (second, draw) => {
    const hot = Math.floor(second / seconds) % slots;
    if (draw < part || slots === 1) return hot;
    const cold = Math.floor(((draw - part) / (1 - part)) * (slots - 1));
    return cold < hot ? cold : cold + 1;
  };
}

/** A total that is shared among the apps in proportion to these figures. */
export function shared(total: (second: number) => number, among: readonly number[]): Rates {
  const sum = among.reduce((a, b) => a + b, 0);
  return (second) => {
    const perUnit = total(second) / sum;
    return among.map((part) => part * perUnit);
  };
}

/** One rate, and from a second on another. */
export function surge(before: number, after: number, at: number): (second: number) => number {
  return (second) => (second < at ? before : after);
}

/** Nothing but between these seconds. */
export function pulse(rate: number, from: number, to: number): (second: number) => number {
  return (second) => (second >= from && second < to ? rate : 0);
}

/** Sums up to each element, as parts of the whole. */
function cumulative(weights: readonly number[]): number[] {
  const total = weights.reduce((a, b) => a + b, 0);
  let sum = 0;
  return weights.map((weight) => (sum += weight) / total);
}

function firstAbove(upTo: readonly number[], draw: number): number {
  let [low, high] = [0, upTo.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (upTo[middle]! > draw) high = middle;
    else low = middle + 1;
  }
  return low;
}

/** Lets requests arrive at random (Poisson), at rates that may change with time. */
export function arrive(
  time: VirtualTime,
  load: Load,
  untilSecond: number,
  random: () => number,
  request: (slot: number, app: number) => void,
): void {
  const until = START_MICROS + untilSecond * 1e6;
  const step = (): void => {
    const rates = load.rates(time.seconds());
    const total = rates.reduce((sum, rate) => sum + rate, 0);
    const gap = total > 0 ? (-Math.log(1 - random()) / total) * 1e6 : Infinity;
    const isRequest = gap <= LOOK_MICROS;
    const at = time.now() + (isRequest ? gap : LOOK_MICROS);
    if (at >= until) return;
    time.at(at, () => {
      if (isRequest) {
        const app = pick(rates, random() * total);
        request(load.slot(time.seconds(), random()), app);
      }
      step();
    });
  };
  step();
}

function pick(rates: readonly number[], draw: number): number {
  let sum = 0;
  for (const [app, rate] of rates.entries()) if (draw < (sum += rate)) return app;
  return rates.length - 1;
}
