import { type CallOutcome } from '../../common/outcome-window.js';
import {
  type RecoveryAdmission,
  type DegradeLevel,
  type RecoveryPhase,
  type TripCause,
} from './contract.js';
import { type RecoverySettings } from './options.js';

/** Where a resource is on its way back. All instants are microseconds. */
export interface RecoveryState {
  readonly phase: RecoveryPhase;
  /** The machine runs, but no request is held by it. */
  readonly observing: boolean;
  /** Pinned by the operator who forced it. */
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
      readonly admission: Pick<RecoveryAdmission, 'kind' | 'epoch' | 'permit'>;
      readonly outcome: CallOutcome;
    }
  | { readonly type: 'force'; readonly level: DegradeLevel | undefined }
  | { readonly type: 'disable' | 'observe' | 'resume' };

export interface RecoveryRules extends RecoverySettings {
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
export function percentOf({ phase, stage }: RecoveryState, { steps }: RecoverySettings): number {
  if (phase === 'normal' || phase === 'disabled') return WHOLE;
  // Steps may become fewer while a ramp is under way.
  return phase === 'ramp' ? steps[Math.min(stage, steps.length - 1)]! : 0;
}

/** Whether the ramp lets the next request through; the event `request` then counts it. */
export function lets(state: RecoveryState, rules: RecoverySettings): boolean {
  return state.owed + percentOf(state, rules) >= WHOLE;
}

export function isProbeDue({ phase, permit, nextProbeAt }: RecoveryState, now: number): boolean {
  return (phase === 'degraded' || phase === 'probing') && permit === 0 && now >= nextProbeAt;
}

/** From when on the event `time` may change something. */
export function timeMatters(state: RecoveryState, rules: RecoverySettings): number {
  if (state.phase === 'probing' && state.permit !== 0) return state.permitUntil;
  if (state.phase !== 'ramp' || state.samples === 0) return Infinity;
  const { stageMinMs, stageMaxMs, minSamples } = rules;
  return state.since + (state.samples >= minSamples ? stageMinMs : stageMaxMs) * 1000;
}

export function leaseMs({ probeTimeoutMs }: RecoverySettings): number {
  return probeTimeoutMs * LEASE_FACTOR;
}

/** A probe without a result means nothing; the next one need not wait as long. */
const SOON = 0.1;

/**
 * The way back of a resource, as a pure function of what happens and when:
 *
 *     normal → degraded → probing → ramp 10 → 30 → 50 → 100 % → normal
 *
 * Three invariants. At most one probe has a permit, and a permit ends with its lease whatever
 * becomes of the call. Each phase has an epoch, and results of another one do not count. Nothing
 * here waits for a timer: changes by time take effect with the next event.
 */
export function reduce(
  state: RecoveryState,
  event: RecoveryEvent,
  now: number,
  rules: RecoveryRules,
): RecoveryState {
  switch (event.type) {
    case 'time':
      return onTime(state, now, rules);
    case 'request':
      return state.phase === 'ramp' ? countRequest(state, rules) : state;
    case 'probe':
      return isProbeDue(state, now) ? takePermit(state, now, rules) : state;
    case 'postpone':
      return isProbeDue(state, now)
        ? { ...state, nextProbeAt: probeAt(state, now, rules, SOON) }
        : state;
    case 'trip':
      return isTrippable(state) ? degrade(state, event.cause, now, rules) : state;
    case 'settled':
      return onResult(state, event.admission, event.outcome, now, rules);
    case 'force':
      return {
        ...enter(state, 'forced', now),
        level: event.level,
        cause: 'operator',
        observing: false,
      };
    case 'disable':
      return { ...enter(state, 'disabled', now), observing: false };
    case 'observe':
      return onObserve(state, now);
    case 'resume':
      return onResume(state, now);
  }
}

function onTime(state: RecoveryState, now: number, rules: RecoveryRules): RecoveryState {
  if (now < timeMatters(state, rules)) return state;
  return state.phase === 'ramp'
    ? nextStage(state, now, rules)
    : degrade(state, 'relapse', now, rules);
}

function onResult(
  state: RecoveryState,
  { kind, epoch, permit }: Pick<RecoveryAdmission, 'kind' | 'epoch' | 'permit'>,
  outcome: CallOutcome,
  now: number,
  rules: RecoveryRules,
): RecoveryState {
  if (epoch !== state.epoch) return state;
  if (state.phase === 'probing' && kind === 'probe' && permit === state.permit && permit !== 0) {
    return onProbe(state, outcome, now, rules);
  }
  if (state.phase === 'ramp' && kind === 'ramped') return onSample(state, outcome, now, rules);
  return state;
}

function onProbe(
  state: RecoveryState,
  outcome: CallOutcome,
  now: number,
  rules: RecoveryRules,
): RecoveryState {
  if (outcome === 'failure' || now >= state.permitUntil) {
    return degrade(state, 'relapse', now, rules);
  }
  if (outcome === 'neutral') {
    return { ...state, permit: 0, nextProbeAt: probeAt(state, now, rules, SOON) };
  }
  const streak = state.streak + 1;
  if (streak >= rules.successThreshold) return beginStage(enter(state, 'ramp', now), 0, now);
  return { ...state, permit: 0, streak, nextProbeAt: probeAt(state, now, rules) };
}

function onSample(
  state: RecoveryState,
  outcome: CallOutcome,
  now: number,
  rules: RecoveryRules,
): RecoveryState {
  if (outcome === 'neutral') return state;
  const samples = state.samples + 1;
  const failures = state.failures + (outcome === 'failure' ? 1 : 0);
  // A part of few calls would be less than one call: it is the part of the least volume then.
  if (failures > rules.tolerance * Math.max(samples, rules.minSamples)) {
    return degrade(state, 'relapse', now, rules);
  }
  return onTime({ ...state, samples, failures }, now, rules);
}

function nextStage(state: RecoveryState, now: number, rules: RecoveryRules): RecoveryState {
  const next = state.stage + 1;
  if (next < rules.steps.length) return beginStage(state, next, now);
  return { ...enter(state, 'normal', now), cause: undefined };
}

/** The first request of a stage passes, and of n requests the share of n, rounded up. */
function beginStage(state: RecoveryState, stage: number, now: number): RecoveryState {
  return { ...state, stage, since: now, samples: 0, failures: 0, owed: WHOLE - 1 };
}

/** Carries the remainder over, so that of any number of requests exactly the percentage passes. */
function countRequest(state: RecoveryState, rules: RecoveryRules): RecoveryState {
  const owed = state.owed + percentOf(state, rules);
  return { ...state, owed: owed >= WHOLE ? owed - WHOLE : owed };
}

function takePermit(state: RecoveryState, now: number, rules: RecoveryRules): RecoveryState {
  const probing = state.phase === 'probing' ? state : enter(state, 'probing', now);
  const permit = state.permits + 1;
  return { ...probing, permit, permits: permit, permitUntil: now + leaseMs(rules) * 1000 };
}

function degrade(
  state: RecoveryState,
  cause: TripCause,
  now: number,
  rules: RecoveryRules,
): RecoveryState {
  const degraded = enter(state, 'degraded', now);
  return { ...degraded, cause, nextProbeAt: probeAt(degraded, now, rules) };
}

function onObserve(state: RecoveryState, now: number): RecoveryState {
  const isOverruled = state.phase === 'forced' || state.phase === 'disabled';
  const machine = isOverruled ? { ...enter(state, 'normal', now), cause: undefined } : state;
  return { ...machine, observing: true };
}

/** Nobody knows how the resource fares that was forced: probes find out, the first one at once. */
function onResume(state: RecoveryState, now: number): RecoveryState {
  if (state.phase === 'forced') return { ...enter(state, 'degraded', now), nextProbeAt: now };
  if (state.phase === 'disabled') return { ...enter(state, 'normal', now), cause: undefined };
  return state.observing ? { ...state, observing: false } : state;
}

/** A new phase has an epoch of its own, and nothing of the old one's counts. */
function enter(state: RecoveryState, phase: RecoveryPhase, now: number): RecoveryState {
  const fresh = {
    level: undefined,
    permit: 0,
    streak: 0,
    stage: 0,
    samples: 0,
    failures: 0,
    owed: 0,
  };
  return { ...state, ...fresh, phase, epoch: state.epoch + 1, since: now };
}

function isTrippable({ phase }: RecoveryState): boolean {
  return phase === 'normal' || phase === 'probing' || phase === 'ramp';
}

function probeAt(state: RecoveryState, now: number, rules: RecoveryRules, part = 1): number {
  const factor = rules.jitter(state.epoch + state.permits);
  return now + rules.probeIntervalMs * part * factor * 1000;
}
