import { durationMs, type Duration } from '../../common/duration.js';
import { InvalidArgumentError } from '../../common/errors.js';
import {
  A_NAME,
  NAME,
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../../common/validate.js';
import { LEVELS, type DegradeLevel } from './contract.js';

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
export interface RecoverySettings {
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

const KNOWN_RECOVERY = [...Object.keys(new RecoveryOptions()), 'slow'];
export const MOST_STEPS = 20;
export const MOST_CALLS = 1e6;
/** More than 1 means never. */
export const MOST_RATE = 2;
export const A_RATE = 'a part of the calls: above 0, and 1 for all of them';
export const A_TOLERANCE = 'a part of the calls from 0 on, below 1';

export function checkRecovery(input: Partial<RecoveryOptions>, at: string): RecoverySettings {
  plainObject(at, input, 'an object');
  rejectUnknown(at, input, KNOWN_RECOVERY);
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

/** `auto`: the machine decides. The others are an operator's word. */
export type ResourceMode = 'auto' | 'forced' | 'disabled' | 'observe';

/** The options of one resource that differ from those of all. */
export interface DegradedResourceOptions {
  mode?: ResourceMode;
  /** With `forced`: the level to answer from. */
  level?: DegradeLevel;
  level1Ttl?: Duration;
  level2Ttl?: Duration;
  coreFields?: readonly string[];
  recovery?: Partial<RecoveryOptions>;
}

/** Fallbacks and the way back. Plain data that may change while it runs; the initial values are the defaults. */
export class DegradationOptions {
  /** How old an answer of the shared cache may be. */
  level1Ttl: Duration = '30s';
  /** How old an answer of the process cache may be. */
  level2Ttl: Duration = '5m';
  /** How long the shared cache is waited for. */
  level1Timeout: Duration = '50ms';
  /** A normal answer is stored again after this part of `level1Ttl`. */
  refreshAfter = 1 / 3;
  /** Of the process cache. */
  maxEntries = 10_000;
  maxBytes = 64 * 1024 * 1024;
  /** Reads of the shared cache that are on their way at once. */
  maxReads = 100;
  /** Calls of one function of level 3 or 4 that run at once. */
  maxFallbacks = 50;
  /** The fields that a reduced answer keeps. Default: those of the route. */
  coreFields?: readonly string[];
  recovery: Partial<RecoveryOptions> = {};
  resources: Record<string, DegradedResourceOptions> = {};
}

export type DegradationInput = Partial<DegradationOptions>;

export interface DegradedResourceSettings {
  readonly mode: ResourceMode;
  readonly level: DegradeLevel | undefined;
  readonly level1TtlMs: number | undefined;
  readonly level2TtlMs: number | undefined;
  readonly coreFields: readonly string[] | undefined;
  readonly recovery: RecoverySettings;
}

/** The options, checked. */
export interface DegradationSettings {
  readonly level1TtlMs: number;
  readonly level2TtlMs: number;
  readonly level1TimeoutMs: number;
  readonly refreshAfter: number;
  readonly maxEntries: number;
  readonly maxBytes: number;
  readonly maxReads: number;
  readonly maxFallbacks: number;
  readonly coreFields: readonly string[] | undefined;
  readonly recovery: RecoverySettings;
  readonly resources: ReadonlyMap<string, DegradedResourceSettings>;
}

const KNOWN = [...Object.keys(new DegradationOptions()), 'coreFields'];
const KNOWN_RESOURCE = ['mode', 'level', 'level1Ttl', 'level2Ttl', 'coreFields', 'recovery'];
export const MODES: readonly ResourceMode[] = ['auto', 'forced', 'disabled', 'observe'];
export const DEFAULT_MODE: ResourceMode = 'auto';
export const A_PART = 'a part above 0, at most 1';
/** Names beyond this share one recovery: a name made of a request must not fill the memory. */
export const MOST_RESOURCES = 1000;
export const MOST_ENTRIES = 10_000_000;
export const MOST_AT_ONCE = 100_000;

export function checkDegradation(
  input: DegradationInput = {},
  at = 'degradation',
): DegradationSettings {
  plainObject(at, input, 'an object');
  rejectUnknown(at, input, KNOWN);
  const options = Object.assign(new DegradationOptions(), withoutUndefined(input));
  wholeAbove0(`${at}.maxEntries`, options.maxEntries, MOST_ENTRIES);
  wholeAbove0(`${at}.maxBytes`, options.maxBytes);
  wholeAbove0(`${at}.maxReads`, options.maxReads, MOST_AT_ONCE);
  wholeAbove0(`${at}.maxFallbacks`, options.maxFallbacks, MOST_AT_ONCE);
  const { refreshAfter } = options;
  if (typeof refreshAfter !== 'number' || !(refreshAfter > 0) || refreshAfter > 1) {
    throw new InvalidArgumentError(`${at}.refreshAfter`, refreshAfter, A_PART);
  }
  return {
    level1TtlMs: durationMs(options.level1Ttl, `${at}.level1Ttl`),
    level2TtlMs: durationMs(options.level2Ttl, `${at}.level2Ttl`),
    level1TimeoutMs: durationMs(options.level1Timeout, `${at}.level1Timeout`),
    refreshAfter,
    maxEntries: options.maxEntries,
    maxBytes: options.maxBytes,
    maxReads: options.maxReads,
    maxFallbacks: options.maxFallbacks,
    coreFields: checkFields(options.coreFields, `${at}.coreFields`),
    recovery: checkRecovery(options.recovery, `${at}.recovery`),
    resources: checkResources(options, at),
  };
}

function checkResources(
  { resources, recovery }: DegradationOptions,
  at: string,
): ReadonlyMap<string, DegradedResourceSettings> {
  plainObject(`${at}.resources`, resources, 'an object of resources by name');
  const names = Object.keys(resources);
  if (names.length > MOST_RESOURCES || names.includes('')) {
    throw new InvalidArgumentError(
      `${at}.resources`,
      names.length,
      `up to ${MOST_RESOURCES} names`,
    );
  }
  const checked = new Map<string, DegradedResourceSettings>();
  for (const [name, resource] of Object.entries(resources)) {
    const path = `${at}.resources.${name}`;
    if (!NAME.test(name)) throw new InvalidArgumentError(path, name, A_NAME);
    checked.set(name, checkResource(resource, recovery, path));
  }
  return checked;
}

function checkResource(
  input: DegradedResourceOptions,
  recovery: Partial<RecoveryOptions>,
  at: string,
): DegradedResourceSettings {
  plainObject(at, input, 'an object');
  rejectUnknown(at, input, KNOWN_RESOURCE);
  const { mode = DEFAULT_MODE, level, level1Ttl, level2Ttl } = input;
  oneOf(`${at}.mode`, mode, MODES);
  if (level !== undefined && (!LEVELS.includes(level) || mode !== 'forced')) {
    throw new InvalidArgumentError(`${at}.level`, level, "1, 2, 3 or 4, and mode 'forced'");
  }
  if (input.recovery !== undefined) plainObject(`${at}.recovery`, input.recovery, 'an object');
  return {
    mode,
    level,
    level1TtlMs: level1Ttl === undefined ? undefined : durationMs(level1Ttl, `${at}.level1Ttl`),
    level2TtlMs: level2Ttl === undefined ? undefined : durationMs(level2Ttl, `${at}.level2Ttl`),
    coreFields: checkFields(input.coreFields, `${at}.coreFields`),
    recovery: checkRecovery(
      { ...recovery, ...withoutUndefined(input.recovery ?? {}) },
      `${at}.recovery`,
    ),
  };
}

export function checkFields(fields: unknown, at: string): readonly string[] | undefined {
  if (fields === undefined) return undefined;
  const isList =
    Array.isArray(fields) && fields.every((field) => typeof field === 'string' && field !== '');
  if (!isList)
    throw new InvalidArgumentError(at, fields, "a list of fields such as 'price.amount'");
  return fields as string[];
}
