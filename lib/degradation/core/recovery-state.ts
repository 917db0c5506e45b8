import {
  type Admission,
  type CallOutcome,
  type DegradeLevel,
  type RecoveryPhase,
  type TripCause,
} from './contract.js';
import { type RecoveryFigures } from './recovery-options.js';

/** Where a resource is on its way back. All instants are microseconds. */
export interface RecoveryState {
  readonly phase: RecoveryPhase;
  /** The machine runs, but nobody acts on it. */
  readonly observing: boolean;
  /** Pinned by whoever forced it. */
  readonly level: DegradeLevel | undefined;
  readonly cause: TripCause | undefined;
  readonly epoch: number;
  /** When the phase began, or the stage of the ramp. */
  readonly since: number;
  readonly nextProbeAt: number;
  /** The probe under way; 0 if there is none. */
  readonly permit: number;
  readonly permitUntil: number;
  /** How many permits there were. */
  readonly permits: number;
  /** Probes that succeeded in a row. */
  readonly streak: number;
  readonly stage: number;
  readonly samples: number;
  readonly failures: number;
  /** Hundredths of a request that the ramp owes; at 100 one passes. */
  readonly owed: number;
}

export type RecoveryEvent =
  | { readonly type: 'time' | 'request' | 'probe' | 'postpone' }
  | { readonly type: 'trip'; readonly cause: TripCause }
  | {
      readonly type: 'settled';
      readonly admission: Pick<Admission, 'kind' | 'epoch' | 'permit'>;
      readonly outcome: CallOutcome;
    }
  | { readonly type: 'force'; readonly level: DegradeLevel | undefined }
  | { readonly type: 'disable' | 'observe' | 'resume' };

export interface RecoveryRules extends RecoveryFigures {
  /** The factor on the interval before a probe, by its number. */
  readonly jitter: (turn: number) => number;
}

const LEASE_FACTOR = 2;
/** Percent, and the hundredths of a request. */
export const WHOLE = 100;

export function initialState(now: number): RecoveryState {
  return {
    ...{ phase: 'normal', observing: false, level: undefined, cause: undefined },
    ...{ epoch: 1, since: now, nextProbeAt: now },
    ...{ permit: 0, permitUntil: now, permits: 0, streak: 0 },
    ...{ stage: 0, samples: 0, failures: 0, owed: 0 },
  };
}

/** The part of the requests that reaches the handler. */
export function percentOf({ phase, stage }: RecoveryState, { steps }: RecoveryFigures): number {
  if (phase === 'normal' || phase === 'disabled') return WHOLE;
  // Steps may become fewer while a ramp is under way.
  return phase === 'ramp' ? steps[Math.min(stage, steps.length - 1)]! : 0;
}

/** Whether the ramp lets the next request through; the event `request` then counts it. */
export function lets(state: RecoveryState, rules: RecoveryFigures): boolean {
  return state.owed + percentOf(state, rules) >= WHOLE;
}

export function isProbeDue({ phase, permit, nextProbeAt }: RecoveryState, now: number): boolean {
  return (phase === 'degraded' || phase === 'probing') && permit === 0 && now >= nextProbeAt;
}

/** From when on the event `time` may change something. */
export function timeMatters(state: RecoveryState, rules: RecoveryFigures): number {
  if (state.phase === 'probing' && state.permit !== 0) return state.permitUntil;
  if (state.phase !== 'ramp' || state.samples === 0) return Infinity;
  const { stageMinMs, stageMaxMs, minSamples } = rules;
  return state.since + (state.samples >= minSamples ? stageMinMs : stageMaxMs) * 1000;
}

export function leaseMs({ probeTimeoutMs }: RecoveryFigures): number {
  return probeTimeoutMs * LEASE_FACTOR;
}
