import { type ScoreSettings } from './settings.js';

/** The signals that the score is made of. */
export interface ScoreInput {
  /** Parts of what there is, 0 to 1. */
  readonly cpu: number;
  readonly loop: number;
  readonly memory: number;
  readonly inFlight: number;
}

/**
 * The load as one number, 0 to 1: each signal counts from its threshold on, in full where there is nothing left
 * (requests: at twice the threshold), and by its weight. NaN counts as no load.
 */
export function scoreOf(
  { cpu, loop, memory, inFlight }: ScoreInput,
  { weights, from, source }: ScoreSettings,
): number {
  // A process of one thread is full when its loop is, whatever part of the machine that is.
  const busy = source === 'literal' || !(loop > cpu) ? cpu : loop;
  return (
    weights.cpu * excess(busy, from.cpu, 1 - from.cpu) +
    weights.memory * excess(memory, from.memory, 1 - from.memory) +
    weights.inFlight * excess(inFlight, from.inFlight, from.inFlight)
  );
}

function excess(value: number, from: number, span: number): number {
  const part = (value - from) / span;
  return part > 0 ? Math.min(1, part) : 0;
}

/** The part of a limit that such a load leaves. */
export function factorOf(load: number, floor: number): number {
  return Math.max(floor, 1 - load * (1 - floor));
}

const UP = 0.5;
const DOWN = 0.2;
const STEP = 0.05;
const STEPS = Math.round(1 / STEP);
/** A factor so near to an end is set to it: the mean comes ever nearer and never there. */
const NEAR_END = 0.01;

/**
 * The factor that limits go by: quick to fall, slow to rise, in steps, and only if it is a whole step away from
 * the last one, so that a load which trembles moves nothing.
 */
export class SmoothedFactor {
  factor = 1;
  private load = 0;

  next(load: number, floor: number): number {
    this.load += (load > this.load ? UP : DOWN) * (load - this.load);
    const exact = factorOf(this.load, floor);
    if (exact > 1 - NEAR_END) this.factor = 1;
    else if (exact < floor + NEAR_END) this.factor = floor;
    else if (Math.abs(exact - this.factor) >= STEP) {
      this.factor = Math.max(floor, Math.round(exact * STEPS) / STEPS);
    }
    return this.factor;
  }

  reset(): void {
    this.load = 0;
    this.factor = 1;
  }
}
