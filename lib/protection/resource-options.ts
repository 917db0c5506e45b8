import { type Duration } from '../common/duration.js';
import { type BreakerMode } from './breaker.js';

/** How many calls at a time. The initial values are the defaults. */
export class BulkheadOptions {
  /** Calls that may be under way at once. */
  maxInFlight = 100;
  /** Calls that may wait for a slot; by default as many as may be under way. 0: none. */
  maxQueue?: number;
  /** How long a call may wait before it begins: for a slot, and for the tokens of `rate`. */
  maxWait: Duration = '100ms';
  /** A call that holds its slot for longer is told of, once. False: never. */
  heldWarning: Duration | false = '2s';
}

/** When a resource is left alone. The initial values are the defaults. */
export class BreakerOptions {
  /** What the rates are taken over: the calls of a time, or so many calls. */
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
  /** Every so many-th slow call is told of, beginning with the first. */
  sampleEvery = 1;
  /** So many characters of a label are told. */
  maxLabel = 200;
}

/** What protects one resource: nothing but what is named here, or in the preset. */
export interface ResourceOptions {
  /** Where to begin; whatever else is given stands over it. */
  readonly preset?: PresetName;
  /** How long a call may take from when it begins; `maxWait` comes before, and is no part of it. */
  readonly deadline?: Duration | false;
  readonly bulkhead?: Partial<BulkheadOptions> | false;
  readonly breaker?: Partial<BreakerOptions> | false;
  readonly slow?: Partial<SlowCallOptions> | false;
  /** A policy of the limiter that calls are charged to, under the resource's name as key. */
  readonly rate?: string | false;
  /** Values that are bigger than this are refused; see `RunOptions.value`. */
  readonly maxValueBytes?: number | false;
  /**
   * Whether an error says that the resource has failed. False: it has answered well, only not with
   * what was hoped for. `'neutral'`: it says nothing about the resource. By default every error is a
   * failure but aborts by the caller and rejections of other resources.
   */
  readonly isFailure?: (error: unknown) => boolean | 'neutral';
}

export type ResourceInput = PresetName | ResourceOptions;
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

export type PresetName = keyof typeof PRESETS;
