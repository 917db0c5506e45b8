import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { isAsyncFunction } from '../common/promises.js';
import {
  NAME,
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../common/validate.js';
import { EXEMPT, type TierRequest } from '../requests/tier.js';
import { type LineSettings } from './line.js';

/** A figure of the load that an application measures itself. */
export interface LoadProbe {
  readonly name: string;
  /** From 0 on; undefined if there is none now. */
  sample(): number | undefined;
}

/** How much each signal counts; together 1. */
export class ScoreWeights {
  cpu = 0.5;
  memory = 0.3;
  inFlight = 0.2;
}

/** From where on each signal counts. */
export class ScoreThresholds {
  /** A part of the processor time that this process may have. */
  cpu = 0.7;
  /** A part of the memory that it may have. */
  memory = 0.8;
  /** Requests; at twice as many the signal counts in full. */
  inFlight = 500;
}

/** How the load is made one number, by which policies with `adaptive: true` shrink. */
export class ScoreOptions {
  weights: Partial<ScoreWeights> = new ScoreWeights();
  from: Partial<ScoreThresholds> = new ScoreThresholds();
  /** The least part of a limit that is left at full load. */
  floor = 0.5;
  /** The processor alone (`'literal'`), or the event loop where that is busier. */
  source: ScoreSource = 'loop';
}

/** The figure that the load of the processor is read from. */
export type ScoreSource = 'loop' | 'literal';

/** The options of overload. The initial values are the defaults. */
export class OverloadOptions {
  /** Whether requests go through the line. */
  enabled = false;
  /** `'observe'` runs everything at once, and counts what would have waited or been refused. */
  mode: OverloadMode = 'on';
  /** How long a request may wait while the loop has had no rest for `interval`. */
  target: Duration = '50ms';
  /** How long it may wait else. */
  interval: Duration = '200ms';
  /** How long requests run in one turn of the event loop. */
  slice: Duration = '5ms';
  /** Requests that wait, of all tiers together. */
  maxWaiting = 1000;
  /** Requests under way; at so many the next wait until one ends. Default: any number. */
  maxInFlight?: number;
  /** Highest first. They count only where the module has `tier`. */
  tiers: readonly string[] = ['S', 'A', 'B', 'C'];
  /** Paths that are read (GET, HEAD) without the line; `/ops/*` stands for all below `/ops/`. */
  exempt: readonly string[] = ['/health', '/healthz', '/livez', '/readyz', '/metrics'];
  /** Refusals name this to twice as much, so that callers do not return together. */
  retryAfter: Duration = '1s';
  /** More headers of refusals: browsers hide an answer without those of CORS. */
  headers: Readonly<Record<string, string>> = {};
  /** How often the load is measured. */
  tick: Duration = '500ms';
  score: Partial<ScoreOptions> = new ScoreOptions();
  /** More figures of the load, by whatever the application measures. Not in a document. */
  probes: readonly LoadProbe[] = [];
  /** Other requests that pass without the line. Has to answer at once. Not in a document. */
  isExempt?: (request: TierRequest) => boolean;
}

/** Whether the line holds requests, or only counts what it would have done. */
export type OverloadMode = 'on' | 'observe';
/** The option `overload` of the module. */
export type OverloadInput = Partial<OverloadOptions>;

export interface ScoreSettings {
  readonly weights: Readonly<ScoreWeights>;
  readonly from: Readonly<ScoreThresholds>;
  readonly floor: number;
  readonly source: ScoreSource;
}

/** The checked options, in the units of the parts that read them. */
export interface OverloadSettings {
  readonly enabled: boolean;
  /** With as many tiers as there are names. */
  readonly line: LineSettings;
  readonly tiers: readonly string[];
  readonly exempt: ReadonlySet<string>;
  /** Beginnings of paths, each with a / at its end. */
  readonly exemptBelow: readonly string[];
  readonly retryAfterMs: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly tickMs: number;
  readonly score: ScoreSettings;
}

export const MODES: readonly OverloadMode[] = ['on', 'observe'];
export const SOURCES: readonly ScoreSource[] = ['loop', 'literal'];
export const [LEAST_SLICE_MS, MOST_SLICE_MS] = [1, 50];
export const MOST_WAITING = 100_000;
export const MOST_TIERS = 8;
export const MOST_EXEMPT = 100;
export const MOST_HEADERS = 20;
export const [LEAST_TICK_MS, MOST_TICK_MS] = [100, 10_000];
export const A_SLICE = `a duration from ${LEAST_SLICE_MS} to ${MOST_SLICE_MS} ms, less than target`;
export const A_TICK = `a duration from ${LEAST_TICK_MS} ms to ${MOST_TICK_MS / 1000} s`;
export const SOME_TIERS = `1 to ${MOST_TIERS} different names, none of them '${EXEMPT}'`;
export const SOME_PATHS = `up to ${MOST_EXEMPT} paths such as /health, or /ops/* for all below it`;
export const SOME_HEADERS = `up to ${MOST_HEADERS} headers by name, their values texts of one line`;
export const A_WEIGHT = 'a number from 0 to 1';
export const WEIGHTS_OF_1 = 'weights that add up to 1';
export const A_THRESHOLD = 'a number from 0 to less than 1';
export const A_FLOOR = 'a number above 0, at most 1';

/** Without a query, which is no part of it; all of `/*` would be no line at all. */
const PATH = /^\/(?:[^*?#\s]+\/\*|[^*?#\s]*)$/;

const HEADER_NAME = /^[\w!#$%&'*+.^`|~-]{1,256}$/;
const HEADER_VALUE = /^[\t\x20-\x7e\x80-\xff]{0,4096}$/;
/** Headers that the refusal has itself, or that would break its form. */
const OWN_HEADERS = [
  ...['content-type', 'content-length', 'transfer-encoding', 'connection', 'retry-after'],
  ...['cache-control', 'keep-alive', 'upgrade', 'trailer', 'te'],
];

export const isTiers = (tiers: unknown): tiers is readonly string[] =>
  Array.isArray(tiers) &&
  tiers.length >= 1 &&
  tiers.length <= MOST_TIERS &&
  tiers.every((name) => typeof name === 'string' && NAME.test(name) && name !== EXEMPT) &&
  new Set(tiers).size === tiers.length;

export const isPaths = (paths: unknown): paths is readonly string[] =>
  Array.isArray(paths) &&
  paths.length <= MOST_EXEMPT &&
  paths.every((path) => typeof path === 'string' && PATH.test(path));

export const isHeaders = (headers: unknown): headers is Readonly<Record<string, string>> =>
  typeof headers === 'object' &&
  headers !== null &&
  !Array.isArray(headers) &&
  Object.keys(headers).length <= MOST_HEADERS &&
  Object.entries(headers).every(
    ([name, value]) =>
      HEADER_NAME.test(name) &&
      !OWN_HEADERS.includes(name.toLowerCase()) &&
      typeof value === 'string' &&
      HEADER_VALUE.test(value),
  );

export function checkOverload(input: OverloadInput, at = 'overload'): OverloadSettings {
  plainObject(at, input, 'an object');
  const defaults = new OverloadOptions();
  rejectUnknown(at, input, [...Object.keys(defaults), 'maxInFlight', 'isExempt']);
  const options = Object.assign(defaults, withoutUndefined(input));
  if (typeof options.enabled !== 'boolean') {
    throw new InvalidArgumentError(`${at}.enabled`, options.enabled, 'true or false');
  }
  oneOf(`${at}.mode`, options.mode, MODES);
  const { tiers, exempt, headers } = options;
  if (!isTiers(tiers)) throw new InvalidArgumentError(`${at}.tiers`, tiers, SOME_TIERS);
  if (!isPaths(exempt)) throw new InvalidArgumentError(`${at}.exempt`, exempt, SOME_PATHS);
  if (!isHeaders(headers)) throw new InvalidArgumentError(`${at}.headers`, headers, SOME_HEADERS);
  checkFunctions(options, at);
  return {
    enabled: options.enabled,
    line: lineOf(options, at),
    ...{ tiers, headers },
    exempt: new Set(exempt.filter((path) => !path.endsWith('*'))),
    exemptBelow: exempt.flatMap((path) => (path.endsWith('*') ? path.slice(0, -1) : [])),
    retryAfterMs: durationMs(options.retryAfter, `${at}.retryAfter`),
    tickMs: tickOf(options.tick, `${at}.tick`),
    score: scoreOf(options.score, `${at}.score`),
  };
}

function lineOf(options: OverloadOptions, at: string): LineSettings {
  const { target, interval, slice, maxWaiting, maxInFlight, tiers, mode } = options;
  const intervalMs = durationMs(interval, `${at}.interval`);
  const targetMs = durationMs(target, `${at}.target`);
  if (targetMs >= intervalMs) {
    throw new InvalidArgumentError(`${at}.target`, target, `less than interval, ${intervalMs} ms`);
  }
  const sliceMs = durationMs(slice, `${at}.slice`);
  if (sliceMs > MOST_SLICE_MS || sliceMs >= targetMs) {
    throw new InvalidArgumentError(`${at}.slice`, slice, A_SLICE);
  }
  wholeAbove0(`${at}.maxWaiting`, maxWaiting, MOST_WAITING);
  if (maxInFlight !== undefined) wholeAbove0(`${at}.maxInFlight`, maxInFlight);
  return {
    targetMicros: targetMs * 1000,
    intervalMicros: intervalMs * 1000,
    sliceMicros: sliceMs * 1000,
    maxWaiting,
    maxInFlight: maxInFlight ?? Infinity,
    tierCount: tiers.length,
    isObserved: mode === 'observe',
  };
}

function tickOf(tick: Duration, at: string): number {
  const tickMs = durationMs(tick, at);
  if (tickMs >= LEAST_TICK_MS && tickMs <= MOST_TICK_MS) return tickMs;
  throw new InvalidArgumentError(at, tick, A_TICK);
}

function scoreOf(input: Partial<ScoreOptions>, at: string): ScoreSettings {
  const { weights, from, floor, source } = filled(at, input, new ScoreOptions());
  oneOf(`${at}.source`, source, SOURCES);
  if (!isNumber(floor) || floor <= 0 || floor > 1) {
    throw new InvalidArgumentError(`${at}.floor`, floor, A_FLOOR);
  }
  return {
    weights: weightsOf(weights, `${at}.weights`),
    from: thresholdsOf(from, `${at}.from`),
    ...{ floor, source },
  };
}

function weightsOf(input: Partial<ScoreWeights>, at: string): ScoreWeights {
  const weights = filled(at, input, new ScoreWeights());
  for (const [name, weight] of Object.entries(weights) as [string, unknown][]) {
    if (isNumber(weight) && weight >= 0 && weight <= 1) continue;
    throw new InvalidArgumentError(`${at}.${name}`, weight, A_WEIGHT);
  }
  const { cpu, memory, inFlight } = weights;
  if (Math.abs(cpu + memory + inFlight - 1) > 1e-9) {
    throw new InvalidArgumentError(at, input, WEIGHTS_OF_1);
  }
  return weights;
}

function thresholdsOf(input: Partial<ScoreThresholds>, at: string): ScoreThresholds {
  const from = filled(at, input, new ScoreThresholds());
  for (const name of ['cpu', 'memory'] as const) {
    if (isNumber(from[name]) && from[name] >= 0 && from[name] < 1) continue;
    throw new InvalidArgumentError(`${at}.${name}`, from[name], A_THRESHOLD);
  }
  wholeAbove0(`${at}.inFlight`, from.inFlight);
  return from;
}

/** The given options over the defaults; unknown ones are an error. */
function filled<T extends object>(at: string, input: Partial<T>, defaults: T): T {
  plainObject(at, input, 'an object');
  rejectUnknown(at, input, Object.keys(defaults));
  return Object.assign(defaults, withoutUndefined(input));
}

const isNumber = (value: unknown): value is number =>
  typeof value === 'number' && Number.isFinite(value);

function checkFunctions({ probes, isExempt }: OverloadOptions, at: string): void {
  if (isExempt !== undefined && (typeof isExempt !== 'function' || isAsyncFunction(isExempt))) {
    throw new InvalidArgumentError(`${at}.isExempt`, isExempt, 'a function that is not async');
  }
  const isProbe = (one: unknown): boolean => {
    const { name, sample } = (one ?? {}) as Partial<LoadProbe>;
    return typeof name === 'string' && NAME.test(name) && typeof sample === 'function';
  };
  const list: unknown = probes;
  const isList = Array.isArray(list) && list.every(isProbe);
  if (isList && new Set(probes.map(({ name }) => name)).size === probes.length) return;
  throw new InvalidArgumentError(
    `${at}.probes`,
    probes,
    'a list of probes, { name, sample() }, each with a name of its own',
  );
}
