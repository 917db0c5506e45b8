import { durationMs, type Duration } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { spread } from '../common/ids.js';
import { isAsyncFunction } from '../common/promises.js';
import {
  oneOf,
  plainObject,
  rejectUnknown,
  wholeAbove0,
  withoutUndefined,
} from '../common/validate.js';
import { type ThrottleSettings } from './throttle.js';
import { BREAKER_MODES, type BreakerMode, type BreakerSettings } from './breaker.js';

/** How many calls at a time. The initial values are the defaults. */
export class BulkheadOptions {
  /** Calls that may be under way at once. */
  maxInFlight = 100;
  /** Calls that may wait for a slot; by default as many as may be under way. 0: none. */
  maxQueue?: number;
  /** How long a call may wait before it begins: for a slot, and for the tokens of `rate`. */
  maxWait: Duration = '100ms';
  /** A call that holds its slot for longer is logged, once. False: never. */
  heldWarning: Duration | false = '2s';
  /**
   * `'fixed'`: always `maxInFlight`. `'gradient'`: fewer while calls take longer than usual, and `maxInFlight` at
   * most; for one downstream that slows down when too much is asked of it.
   */
  limit: BulkheadLimit = 'fixed';
}

export const BULKHEAD_LIMITS = ['fixed', 'gradient'] as const;
/** Whether the number of slots is fixed, or follows how long calls take. */
export type BulkheadLimit = (typeof BULKHEAD_LIMITS)[number];

/** When calls are held back because the resource refuses them. The initial values are the defaults. */
export class ThrottleOptions {
  /** So many calls go out for each that is accepted, before any is held back. */
  ratio = 2;
  /** The span of the counts. */
  window: Duration = '10s';
  /** With fewer calls than this in the window none is held back. */
  minimumCalls = 20;
  /** The part of calls that is held back at most: those that go find out when there is room again. */
  most = 0.9;
  /**
   * Whether an error says that the resource has refused the call. By default HTTP 429 and 503, gRPC 8 and 14, and
   * what services with this library answer when they refuse.
   */
  isRefusal?: (error: unknown) => boolean;
}

/** When a resource is left alone. The initial values are the defaults. */
export class BreakerOptions {
  /** The span of the rates: the calls of a time, or so many calls. */
  window: Duration | { readonly calls: number } = '10s';
  /** With fewer calls than this in the window nothing is concluded. */
  minimumCalls = 20;
  /** The share of failures that opens it. */
  errorRate = 0.5;
  /** The share of slow calls that opens it. */
  slowRate = 0.5;
  /** A call that takes longer is slow; by default the threshold of `slow`, and without that no call is. */
  slowCall?: Duration;
  /** How long it stays open, ± a fifth. */
  openFor: Duration = '5s';
  /** Calls that may try at once whether the resource is back. */
  probes = 1;
  /** Tries in a row that must succeed before all calls may go again. */
  successes = 3;
  /** A try without an outcome for so long has failed; by default twice the deadline, or 30 s. */
  probeLease?: Duration;
  /** `'auto'`, or as an operator wants it: `'forced'` open, `'disabled'`, or only `'observe'`. */
  mode: BreakerMode = 'auto';
}

/** The log of slow calls. The initial values are the defaults. */
export class SlowCallOptions {
  /** A call that takes longer is slow; waiting does not count. */
  threshold: Duration = '200ms';
  /** Every so many-th slow call is logged, beginning with the first. */
  sampleEvery = 1;
  /** So many characters of a label are logged. */
  maxLabel = 200;
}

/**
 * The key of a call, which names the bucket that its tokens come from: the value of an argument, `{ arg: 0 }`, something in it, `{ arg: 1, path: 'sku.id' }`, or
 * what a function makes of the arguments. Names of arguments do not survive compilation, so there are none.
 */
export type RateKey =
  | { readonly arg: number; readonly path?: string }
  | ((...args: never[]) => string | number | undefined | null);

/** The policy that calls are charged to. */
export interface RateOptions {
  readonly policy: string;
  /** Without one all calls of the resource share a bucket. */
  readonly key?: RateKey;
}

/** The protection of one resource: nothing but the options given here, or by the preset. */
export interface ResourceOptions {
  /** Where to begin; whatever else is given stands over it. */
  readonly preset?: PresetName;
  /** How long a call may take from when it begins; `maxWait` comes before, and is no part of it. */
  readonly deadline?: Duration | false;
  readonly bulkhead?: Partial<BulkheadOptions> | false;
  readonly breaker?: Partial<BreakerOptions> | false;
  /** Holds calls back that the resource would only refuse. */
  readonly throttle?: Partial<ThrottleOptions> | false;
  readonly slow?: Partial<SlowCallOptions> | false;
  /** A policy of the limiter that calls are charged to; by its name alone, under the resource's name as key. */
  readonly rate?: string | Partial<RateOptions> | false;
  /** Values that are bigger than this are refused; see `RunOptions.value`. */
  readonly maxValueBytes?: number | false;
  /**
   * Whether an error says that the resource has failed. False: it has answered well, only not with
   * what was hoped for. `'neutral'`: it says nothing about the resource. By default every error is a
   * failure but aborts by the caller and rejections of other resources.
   */
  readonly isFailure?: (error: unknown) => boolean | 'neutral';
}

/** A resource as options have it: the name of a preset, or options. */
export type ResourceInput = PresetName | ResourceOptions;
/** Resources by name. */
export type ResourcesInput = Readonly<Record<string, ResourceInput>>;

const MIB = 1024 * 1024;

/** Figures that have proved themselves, for the two resources that nearly every service has. */
export const PRESETS = {
  redis: {
    deadline: 50,
    bulkhead: { maxInFlight: 500, maxWait: 100 },
    maxValueBytes: MIB,
  },
  database: {
    deadline: 200,
    bulkhead: { maxInFlight: 200, maxWait: 1000, heldWarning: 2000 },
    breaker: { window: '10s', minimumCalls: 20, errorRate: 0.5 },
    slow: { threshold: 200 },
  },
} as const satisfies Record<string, ResourceOptions>;

/** Figures that come along: `redis` or `database`. */
export type PresetName = keyof typeof PRESETS;

/** The options of one resource, checked and in the units of the clock. */
export interface ResourceSettings {
  /** Of work that has begun. Infinity: none. */
  readonly deadlineMicros: number;
  /** Of a call that has not begun: for tokens and for a slot. */
  readonly maxWaitMicros: number;
  readonly bulkhead: BulkheadSettings | undefined;
  readonly breaker: BreakerSettings | undefined;
  readonly throttle: ThrottleSettings | undefined;
  readonly slow: SlowCallSettings | undefined;
  readonly rate: RateSettings | undefined;
  readonly maxValueBytes: number;
  readonly isFailure: ResourceOptions['isFailure'];
}

export interface RateSettings {
  readonly policy: string;
  readonly key: RateKey | undefined;
}

export interface BulkheadSettings {
  readonly maxInFlight: number;
  readonly maxQueue: number;
  readonly maxWaitMicros: number;
  readonly heldWarningMicros: number;
  readonly limit: BulkheadLimit;
}

export interface SlowCallSettings {
  readonly thresholdMicros: number;
  readonly sampleEvery: number;
  readonly maxLabel: number;
}

const KNOWN_OPTIONS: readonly (keyof ResourceOptions)[] = [
  ...(['preset', 'deadline', 'bulkhead', 'breaker', 'throttle', 'slow', 'rate'] as const),
  ...(['maxValueBytes', 'isFailure'] as const),
];
export const MOST_CALLS = 1_000_000;
export const A_SHARE = 'a share above 0, up to 1';
/** Were it 1, no call would find out that there is room again. */
export const A_PART = 'a part above 0 and below 1';
export const LARGEST_RATIO = 100;
const LEASE_WITHOUT_DEADLINE_MS = 30_000;
const JITTER_STEPS = 1 << 20;

/** Later ones over earlier ones; those of groups field by field. */
export function joinOptions(...inputs: readonly (ResourceInput | undefined)[]): ResourceOptions {
  const joined: Record<string, unknown> = {};
  for (const input of inputs) {
    const options = typeof input === 'string' ? { preset: input } : (input ?? {});
    for (const [name, value] of Object.entries(withoutUndefined(options))) {
      joined[name] =
        isGroup(value) && isGroup(joined[name]) ? { ...joined[name], ...value } : value;
    }
  }
  return joined;
}

const isGroup = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** `at` is the path of the resource in its document; `seed` makes this node's jitter another than others'. */
export function compileResource(at: string, input: ResourceInput, seed: string): ResourceSettings {
  const preset = presetOf(at, input);
  const given = joinOptions(preset === undefined ? undefined : PRESETS[preset], input);
  rejectUnknown(at, given, KNOWN_OPTIONS);
  const { maxValueBytes, isFailure } = given;
  const deadlineMicros = microsOrOff(given.deadline, `${at}.deadline`);
  const slow = slowOf(`${at}.slow`, given.slow);
  if (isFailure !== undefined && typeof isFailure !== 'function') {
    throw new InvalidArgumentError(`${at}.isFailure`, isFailure, 'a function');
  }
  if (isGiven(maxValueBytes)) wholeAbove0(`${at}.maxValueBytes`, maxValueBytes);
  const bulkhead = bulkheadOf(`${at}.bulkhead`, given.bulkhead);
  return {
    deadlineMicros,
    // Without a line to wait in there may still be a rate that holds calls back.
    maxWaitMicros: bulkhead?.maxWaitMicros ?? deadlineMicros,
    bulkhead,
    breaker: breakerOf(`${at}.breaker`, given.breaker, { deadlineMicros, slow, seed }),
    throttle: throttleOf(`${at}.throttle`, given.throttle),
    slow,
    rate: rateOf(`${at}.rate`, given.rate),
    maxValueBytes: isGiven(maxValueBytes) ? maxValueBytes : Infinity,
    isFailure,
  };
}

/** Whether nothing has changed, functions included. */
export function sameSettings<T>(a: T, b: T): boolean {
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) {
    return Object.is(a, b);
  }
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  // Made anew each time, and the same for the same node and resource.
  names.delete('jitter');
  return [...names].every((name) =>
    sameSettings((a as Record<string, unknown>)[name], (b as Record<string, unknown>)[name]),
  );
}

export function checkShape(at: string, input: unknown): void {
  if (typeof input === 'string') return;
  const presets = Object.keys(PRESETS).join(', ');
  plainObject(at, input, `an object, or the name of a preset: ${presets}`);
}

function presetOf(at: string, input: ResourceInput): PresetName | undefined {
  checkShape(at, input);
  const preset = typeof input === 'string' ? input : undefined;
  const named = preset ?? (input as ResourceOptions).preset;
  const field = preset === undefined ? `${at}.preset` : at;
  if (named !== undefined) oneOf(field, named, Object.keys(PRESETS));
  return named;
}

function rateOf(at: string, input: ResourceOptions['rate']): RateSettings | undefined {
  if (!isGiven(input)) return undefined;
  if (typeof input === 'string' && input !== '') return { policy: input, key: undefined };
  plainObject(at, input, 'the name of a policy, an object with policy and key, or false');
  const { policy, key } = input as RateOptions;
  rejectUnknown(at, input as RateOptions, ['policy', 'key']);
  if (typeof policy !== 'string' || policy === '') {
    throw new InvalidArgumentError(`${at}.policy`, policy, 'the name of a policy');
  }
  if (key !== undefined) checkKey(`${at}.key`, key);
  return { policy, key };
}

function checkKey(at: string, key: RateKey): void {
  if (typeof key === 'function') {
    if (!isAsyncFunction(key)) return;
    throw new InvalidArgumentError(at, key, 'a function that is not async');
  }
  plainObject(at, key, '{ arg: place }, { arg: place, path }, or a function of the arguments');
  rejectUnknown(at, key, ['arg', 'path']);
  const { arg, path } = key;
  if (!Number.isInteger(arg) || arg < 0) {
    throw new InvalidArgumentError(`${at}.arg`, arg, 'a place counted from 0');
  }
  if (path !== undefined && (typeof path !== 'string' || path === '')) {
    throw new InvalidArgumentError(`${at}.path`, path, "a path such as 'sku.id'");
  }
}

function bulkheadOf(at: string, input: ResourceOptions['bulkhead']): BulkheadSettings | undefined {
  const options = filled(at, input, new BulkheadOptions(), ['maxQueue']);
  if (options === undefined) return undefined;
  const { maxInFlight, maxQueue = maxInFlight } = options;
  wholeAbove0(`${at}.maxInFlight`, maxInFlight, MOST_CALLS);
  if (maxQueue !== 0) wholeAbove0(`${at}.maxQueue`, maxQueue, MOST_CALLS);
  oneOf(`${at}.limit`, options.limit, BULKHEAD_LIMITS);
  return {
    limit: options.limit,
    maxInFlight,
    maxQueue,
    maxWaitMicros: micros(options.maxWait, `${at}.maxWait`),
    heldWarningMicros: microsOrOff(options.heldWarning, `${at}.heldWarning`),
  };
}

function throttleOf(at: string, input: ResourceOptions['throttle']): ThrottleSettings | undefined {
  const options = filled(at, input, new ThrottleOptions(), ['isRefusal']);
  if (options === undefined) return undefined;
  const { ratio, minimumCalls, most, isRefusal } = options;
  if (!(typeof ratio === 'number' && ratio >= 1 && ratio <= LARGEST_RATIO)) {
    throw new InvalidArgumentError(`${at}.ratio`, ratio, `a number from 1 to ${LARGEST_RATIO}`);
  }
  wholeAbove0(`${at}.minimumCalls`, minimumCalls, MOST_CALLS);
  if (!(typeof most === 'number' && most > 0 && most < 1)) {
    throw new InvalidArgumentError(`${at}.most`, most, A_PART);
  }
  if (isRefusal !== undefined && typeof isRefusal !== 'function') {
    throw new InvalidArgumentError(`${at}.isRefusal`, isRefusal, 'a function');
  }
  const windowMicros = micros(options.window, `${at}.window`);
  return { ratio, minimumCalls, most, isRefusal, windowMicros };
}

function slowOf(at: string, input: ResourceOptions['slow']): SlowCallSettings | undefined {
  const options = filled(at, input, new SlowCallOptions());
  if (options === undefined) return undefined;
  wholeAbove0(`${at}.sampleEvery`, options.sampleEvery);
  wholeAbove0(`${at}.maxLabel`, options.maxLabel);
  const { sampleEvery, maxLabel } = options;
  return { thresholdMicros: micros(options.threshold, `${at}.threshold`), sampleEvery, maxLabel };
}

interface BreakerBasis {
  readonly deadlineMicros: number;
  readonly slow: SlowCallSettings | undefined;
  readonly seed: string;
}

function breakerOf(
  at: string,
  input: ResourceOptions['breaker'],
  { deadlineMicros, slow, seed }: BreakerBasis,
): BreakerSettings | undefined {
  const options = filled(at, input, new BreakerOptions(), ['slowCall', 'probeLease']);
  if (options === undefined) return undefined;
  const { window, minimumCalls, errorRate, slowRate, slowCall, probes, successes, mode } = options;
  const { probeLease } = options;
  const lease =
    deadlineMicros === Infinity ? LEASE_WITHOUT_DEADLINE_MS : (2 * deadlineMicros) / 1000;
  const windowCalls = isGroup(window) ? callsOf(`${at}.window`, window) : undefined;
  wholeAbove0(`${at}.minimumCalls`, minimumCalls, windowCalls ?? MOST_CALLS);
  share(`${at}.errorRate`, errorRate);
  share(`${at}.slowRate`, slowRate);
  wholeAbove0(`${at}.probes`, probes, MOST_CALLS);
  wholeAbove0(`${at}.successes`, successes, MOST_CALLS);
  oneOf(`${at}.mode`, mode, BREAKER_MODES);
  return {
    ...{ mode, minimumCalls, errorRate, slowRate, probes, successes, windowCalls },
    windowMicros: isGroup(window) ? Infinity : micros(window, `${at}.window`),
    slowMicros:
      slowCall === undefined
        ? (slow?.thresholdMicros ?? Infinity)
        : micros(slowCall, `${at}.slowCall`),
    openMicros: micros(options.openFor, `${at}.openFor`),
    leaseMicros: micros(probeLease === undefined ? lease : probeLease, `${at}.probeLease`),
    jitter: (epoch) => spread(`${seed}/${at}/${epoch}`, JITTER_STEPS) / JITTER_STEPS,
  };
}

function callsOf(at: string, window: { readonly calls: number }): number {
  rejectUnknown(at, window, ['calls']);
  wholeAbove0(`${at}.calls`, window.calls, MOST_CALLS);
  return window.calls;
}

function filled<T extends object>(
  at: string,
  input: Partial<T> | false | undefined,
  defaults: T,
  withoutDefault: readonly string[] = [],
): T | undefined {
  if (!isGiven(input)) return undefined;
  plainObject(at, input, 'an object, or false');
  rejectUnknown(at, input, [...Object.keys(defaults), ...withoutDefault]);
  return Object.assign(defaults, withoutUndefined(input));
}

function share(field: string, value: unknown): void {
  if (typeof value === 'number' && value > 0 && value <= 1) return;
  throw new InvalidArgumentError(field, value, A_SHARE);
}

const micros = (value: Duration, field: string): number => durationMs(value, field) * 1000;

/** Infinity where there is none. */
function microsOrOff(value: Duration | false | undefined, field: string): number {
  return isGiven(value) ? micros(value, field) : Infinity;
}

function isGiven<T>(value: T | false | undefined): value is T {
  return value !== undefined && value !== false;
}
