import { durationMs, type Duration } from '../../common/duration.js';
import { InvalidArgumentError } from '../../common/errors.js';
import {
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../../common/validate.js';

/** When a resource counts as ill, and how it gets back. The initial values are the defaults. */
export class RecoveryOptions {
  /** Failures are counted over this span… */
  window: Duration = '10s';
  /** …and mean nothing below so many calls. */
  minCalls = 20;
  /** From this part of failed calls on the resource is degraded; 1.1 would be never. */
  errorRate = 0.5;
  /** A call that takes longer is slow. Default: none is. */
  slow?: Duration;
  /** From this part of slow calls on the resource is degraded. */
  slowRate = 0.5;
  /** Between two probes, give or take a fifth, so that nodes do not knock in step. */
  probeInterval: Duration = '10s';
  /** So many probes have to succeed in a row. */
  successThreshold = 3;
  /** A probe should be done by then; after twice the time it counts as failed. */
  probeTimeout: Duration = '5s';
  /** The part of the requests that is let through, stage by stage, in percent. */
  steps: readonly number[] = [10, 30, 50, 100];
  /** A stage lasts at least this long… */
  stageMin: Duration = '10s';
  /** …and until so many calls have come back… */
  minSamples = 20;
  /** …but where there are few, one is enough after this. */
  stageMax: Duration = '60s';
  /** The part of the calls of a stage that may fail. Probes may not. */
  tolerance = 0;
}

/** The figures of a recovery, checked. */
export interface RecoveryFigures {
  readonly windowMs: number;
  readonly minCalls: number;
  readonly errorRate: number;
  /** Infinity: no call is slow. */
  readonly slowMs: number;
  readonly slowRate: number;
  readonly probeIntervalMs: number;
  readonly successThreshold: number;
  readonly probeTimeoutMs: number;
  readonly steps: readonly number[];
  readonly stageMinMs: number;
  readonly stageMaxMs: number;
  readonly minSamples: number;
  readonly tolerance: number;
}

const KNOWN = [...Object.keys(new RecoveryOptions()), 'slow'];
export const MOST_STEPS = 20;
export const MOST_CALLS = 1e6;
/** More than 1 means never. */
export const MOST_RATE = 2;
export const A_RATE = 'a part of the calls: above 0, and 1 for all of them';
export const A_TOLERANCE = 'a part of the calls from 0 on, below 1';

export function checkRecovery(input: Partial<RecoveryOptions>, at: string): RecoveryFigures {
  plainObject(at, input, 'an object');
  rejectUnknown(at, input, KNOWN);
  const options = Object.assign(new RecoveryOptions(), withoutUndefined(input));
  const { minCalls, successThreshold, minSamples } = options;
  wholeAbove0(`${at}.minCalls`, minCalls, MOST_CALLS);
  wholeAbove0(`${at}.successThreshold`, successThreshold, MOST_CALLS);
  wholeAbove0(`${at}.minSamples`, minSamples, MOST_CALLS);
  aboveZero(`${at}.errorRate`, options.errorRate);
  aboveZero(`${at}.slowRate`, options.slowRate);
  checkTolerance(`${at}.tolerance`, options.tolerance);
  const stageMinMs = durationMs(options.stageMin, `${at}.stageMin`);
  return {
    windowMs: durationMs(options.window, `${at}.window`),
    minCalls,
    errorRate: options.errorRate,
    slowMs: options.slow === undefined ? Infinity : durationMs(options.slow, `${at}.slow`),
    slowRate: options.slowRate,
    probeIntervalMs: durationMs(options.probeInterval, `${at}.probeInterval`),
    successThreshold,
    probeTimeoutMs: durationMs(options.probeTimeout, `${at}.probeTimeout`),
    steps: checkSteps(options.steps, `${at}.steps`),
    stageMinMs,
    stageMaxMs: Math.max(stageMinMs, durationMs(options.stageMax, `${at}.stageMax`)),
    minSamples,
    tolerance: options.tolerance,
  };
}

function checkSteps(steps: unknown, field: string): readonly number[] {
  const list: unknown[] = Array.isArray(steps) ? steps : [];
  const rises = list.every(
    (step, i) => Number.isInteger(step) && Number(step) > Number(list[i - 1] ?? 0),
  );
  if (list.length === 0 || list.length > MOST_STEPS || !rises || list.at(-1) !== 100) {
    throw new InvalidArgumentError(
      field,
      steps,
      `up to ${MOST_STEPS} rising percentages that end with 100`,
    );
  }
  return Object.freeze([...list] as number[]);
}

function aboveZero(field: string, value: unknown): void {
  if (typeof value !== 'number' || !(value > 0) || value > MOST_RATE) {
    throw new InvalidArgumentError(field, value, A_RATE);
  }
}

function checkTolerance(field: string, value: unknown): void {
  if (typeof value !== 'number' || !(value >= 0) || value >= 1) {
    throw new InvalidArgumentError(field, value, A_TOLERANCE);
  }
}
