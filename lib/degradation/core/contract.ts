import { type CallOutcome } from '../../common/outcome-window.js';
import { type SchemaVersion } from '../../stores/shared-cache.js';

/** 1 shared cache, 2 process cache, 3 simplified, 4 default. 0 would be the normal answer. */
export type DegradeLevel = 1 | 2 | 3 | 4;
export const LEVELS: readonly DegradeLevel[] = [1, 2, 3, 4];

/** Why a request gets another answer than its own. */
export type DegradeReason =
  | 'limited'
  | 'failed'
  | 'slow'
  | 'open'
  | 'degraded'
  | 'forced'
  | 'overload';
export const REASONS: readonly DegradeReason[] = [
  'limited',
  'failed',
  'slow',
  'open',
  'degraded',
  'forced',
  'overload',
];

// Recovery ---------------------------------------------------------------------------------------

/**
 * The admission of a request. With `normal`, `probe` and `ramped` the handler runs, and `settled` has
 * to be called with its outcome, exactly once. With `degraded` it does not run.
 */
export interface RecoveryAdmission {
  readonly kind: 'normal' | 'probe' | 'ramped' | 'degraded';
  /** Of the state that admitted it; results of another epoch do not count. */
  readonly epoch: number;
  /** The level that an operator has pinned; only with `degraded`. */
  readonly level?: DegradeLevel;
  /** Why it is held; only with `degraded`. */
  readonly reason?: 'degraded' | 'forced';
  /** Tells the permits of probes apart; 0 for others. */
  readonly permit: number;
}

/** The states of a resource of `@Degrade`. */
export type RecoveryPhase = 'normal' | 'degraded' | 'probing' | 'ramp' | 'forced' | 'disabled';

/** The cause of `degraded`. */
export type TripCause = 'errors' | 'slow' | 'breaker' | 'overload' | 'operator' | 'relapse';

/** A resource has another state. */
export interface RecoveryChange {
  readonly resource: string;
  readonly from: RecoveryPhase;
  readonly to: RecoveryPhase;
  /** The part of the requests that reaches the handler, 0 to 100. */
  readonly percent: number;
  readonly epoch: number;
  readonly cause: TripCause | undefined;
  /** True if it is only watched what would happen. */
  readonly observing: boolean;
}

/** Where a resource is on its way back. */
export interface RecoveryStats {
  readonly resource: string;
  readonly phase: RecoveryPhase;
  readonly observing: boolean;
  readonly percent: number;
  readonly epoch: number;
  readonly cause: TripCause | undefined;
  readonly level: DegradeLevel | undefined;
  /** Wall-clock milliseconds. */
  readonly sinceMs: number;
  /** Requests while all was well. */
  readonly normal: number;
  /** Requests that did not reach the handler outside of a ramp (or, observed, would not have). */
  readonly held: number;
  /** The way back: what each stage of the ramp let through and held. */
  readonly stages: readonly {
    readonly percent: number;
    readonly entered: number;
    readonly admitted: number;
    readonly held: number;
  }[];
  readonly probes: {
    readonly begun: number;
    readonly succeeded: number;
    readonly failed: number;
    readonly neutral: number;
    readonly expired: number;
    /** Another node was probing. */
    readonly refused: number;
  };
  /** How often it fell to `degraded`, by cause. */
  readonly trips: Readonly<Record<TripCause, number>>;
  /** How often it came all the way back. */
  readonly recovered: number;
  /** Results that came after their state was over. */
  readonly late: number;
}

/** The health of one resource, and how much traffic it gets. */
export interface ResourceRecovery {
  readonly resource: string;
  readonly phase: RecoveryPhase;
  readonly percent: number;
  /** Decides at once; allocates nothing while all is well. */
  admit(): RecoveryAdmission;
  /**
   * The outcome of a call that was admitted, and its time: now, unless the caller has just read the
   * clock. Of a late or doubled result only the permit is freed.
   */
  settled(
    admission: RecoveryAdmission,
    outcome: CallOutcome,
    durationMs: number,
    nowMicros?: number,
  ): void;
  /** A cause outside of the window degrades the resource. */
  trip(cause: TripCause): void;
  /** All requests get a fallback, of that level if one is given, until `resume()`. */
  force(level?: DegradeLevel): void;
  /** All requests pass, and nothing is counted, until `resume()`. */
  disable(): void;
  /** The machine runs and emits its changes, but holds no request, until `resume()`. */
  observe(): void;
  /** Back to the machine. After `force` the way leads through probes and the ramp. */
  resume(): void;
  stats(): RecoveryStats;
}

/** A check of the resource by the user. Resolves to false, rejects or throws if it is not well. */
export type HealthProbe = (signal: AbortSignal) => Promise<unknown>;

// Levels -----------------------------------------------------------------------------------------

/** The argument of a function of level 3 or 4. */
export interface FallbackCall {
  readonly level: 3 | 4;
  readonly reason: DegradeReason;
  readonly error: unknown;
  /** The request's own context for its functions. */
  readonly context: unknown;
  readonly remainingMs: number;
}

export type FallbackFunction = (call: FallbackCall) => unknown;

/** The levels of a route. Made once per route: its functions share one bulkhead each. */
export interface FallbackLevels {
  /** The name under which the options know it; see `resources`. */
  readonly resource?: string;
  /** Level 1. `false`: none; a number: its own age limit in milliseconds. Default: by the options. */
  readonly level1?: boolean | number;
  /** Level 2, likewise. */
  readonly level2?: boolean | number;
  /** Level 3. */
  readonly level3?: FallbackFunction;
  /** Level 4: a value, or a function that makes one. */
  readonly level4?: { readonly value: unknown } | { readonly make: FallbackFunction };
  /** The fields that a reduced answer keeps, `price.amount` for inner ones. */
  readonly coreFields?: readonly string[];
  /** The levels at which answers are reduced to `coreFields`. Default: only 3. */
  readonly coreLevels?: readonly DegradeLevel[];
  readonly schemaVersion?: SchemaVersion;
  /** The sort of answer that the route gives; see `Envelope`. Default: `json`. */
  readonly kind?: string;
  /** Whether a cached body is one that this route could have given. A function that throws does not accept. */
  readonly accepts?: (body: unknown) => boolean;
  /** Makes of a cached body what the handler had returned, such as an instance of a class. */
  readonly revive?: (body: unknown) => unknown;
}

export interface FallbackRequest {
  readonly levels: FallbackLevels;
  /** Of the caches; undefined where levels 1 and 2 may not be used for this caller. */
  readonly key: string | undefined;
  readonly reason: DegradeReason;
  /** Instant of the clock, in microseconds, by which there is an answer or none. */
  readonly deadline: number;
  /** The level to begin at, as pinned by an operator. */
  readonly level?: DegradeLevel;
  /** The store is what failed: level 1 is left out. */
  readonly storeIsAway?: boolean;
  readonly error?: unknown;
  readonly context?: unknown;
}

export interface FallbackAnswer {
  readonly level: DegradeLevel;
  readonly value: unknown;
  /** How old it is; 0 for what was made just now. */
  readonly ageMs: number;
  /** How long it may still be used at this level, in milliseconds; 0 for what is not cached. */
  readonly ttlMs: number;
  /** Older than callers may expect: level 2. */
  readonly stale: boolean;
  readonly reason: DegradeReason;
}

// The house --------------------------------------------------------------------------------------

/** The result of a warm-up. */
export interface WarmUpReport {
  readonly loaded: number;
  /** Nothing was there to load, or it could not be stored. */
  readonly skipped: number;
  readonly failed: number;
}

/** Levels 1 and 2. Bodies are kept as text, so that no request can change another's answer. */
export interface AnswerStore {
  /** Whether an answer is worth storing now: few are. To be called before `store`; allocates nothing. */
  isDue(levels: FallbackLevels, key: string): boolean;
  /** Keeps a normal answer. False if it is not kept; that is counted and never thrown. */
  store(levels: FallbackLevels, key: string, body: unknown): boolean;
  /** Fills the caches before they are needed, a few loads at a time. `failed` is called for errors. */
  warmUp(
    levels: FallbackLevels,
    keys: Iterable<string> | AsyncIterable<string>,
    load: (key: string) => unknown,
    failed?: (error: unknown) => void,
  ): Promise<WarmUpReport>;
}
