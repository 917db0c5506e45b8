import { jitterAround } from '../common/jitter.js';
import { type CallOutcome } from '../common/outcome-window.js';

/**
 * The states of a breaker and the ways between them, as functions of (state, now).
 *
 * closed → open when the rates of its window are too high; open → half-open when its time is over;
 * half-open → closed after `successes` probes in a row, or → open at the first that fails. Each new
 * state has a new epoch: what was begun in another epoch counts no more. A probe is a permit with a
 * lease, so one that never comes back cannot wedge the breaker.
 */
export type BreakerState = ClosedState | OpenState | HalfOpenState;
/** The states of a breaker. */
export type BreakerKind = 'closed' | 'open' | 'half-open';

/** A breaker that is half open lets a few calls try; until these succeed the others are refused, as before. */
export const isNotClosed = (kind: BreakerKind | undefined): boolean =>
  kind === 'open' || kind === 'half-open';

/** The right to make one call, and the epoch in which its outcome counts. */
export interface Permit {
  readonly epoch: number;
  /** 0 while closed, where permits are not counted. */
  readonly probe: number;
}

export interface Lease extends Permit {
  readonly expiresAtMicros: number;
  /** False while the call still waits for a slot. */
  readonly started: boolean;
}

interface ClosedState {
  readonly kind: 'closed';
  readonly epoch: number;
  /** One for all calls of the epoch. */
  readonly permit: Permit;
}

interface OpenState {
  readonly kind: 'open';
  readonly epoch: number;
  readonly untilMicros: number;
}

interface HalfOpenState {
  readonly kind: 'half-open';
  readonly epoch: number;
  readonly leases: readonly Lease[];
  readonly successes: number;
  readonly nextProbe: number;
}

export interface BreakerRules {
  readonly openMicros: number;
  /** Probes that may be under way at once. */
  readonly probes: number;
  /** Probes in a row that close it. */
  readonly successes: number;
  readonly leaseMicros: number;
  /** From 0 to 1, for each epoch another: nodes that open together must not probe together. */
  readonly jitter: (epoch: number) => number;
}

export function closed(epoch: number): BreakerState {
  return { kind: 'closed', epoch, permit: { epoch, probe: 0 } };
}

export function opened(epoch: number, now: number, rules: BreakerRules): BreakerState {
  const openMicros = jitterAround(rules.openMicros, rules.jitter(epoch));
  return { kind: 'open', epoch, untilMicros: now + openMicros };
}

/** The state as time alone changes it: an open one that is over, a lease that has run out. */
export function aged(state: BreakerState, now: number, rules: BreakerRules): BreakerState {
  switch (state.kind) {
    case 'closed':
      return state;
    case 'open':
      return now < state.untilMicros ? state : halfOpen(state.epoch + 1);
    case 'half-open':
      return withoutExpired(state, now, rules);
  }
}

/** The lease of the next probe, if one may go. */
export function leaseOf(state: BreakerState, now: number, rules: BreakerRules): Lease | undefined {
  if (state.kind !== 'half-open' || state.leases.length >= rules.probes) return undefined;
  const { epoch, nextProbe: probe } = state;
  return { epoch, probe, expiresAtMicros: now + rules.leaseMicros, started: false };
}

export function granted(state: BreakerState, lease: Lease): BreakerState {
  if (state.kind !== 'half-open') return state;
  return { ...state, leases: [...state.leases, lease], nextProbe: lease.probe + 1 };
}

/** The call of a permit begins now; its lease counts from here. */
export function begun(
  state: BreakerState,
  permit: Permit,
  now: number,
  rules: BreakerRules,
): BreakerState {
  if (state.kind !== 'half-open' || !isHeld(state, permit)) return state;
  const begin = (lease: Lease): Lease =>
    lease.probe === permit.probe
      ? { ...lease, started: true, expiresAtMicros: now + rules.leaseMicros }
      : lease;
  return { ...state, leases: state.leases.map(begin) };
}

/** Whether the outcome of this permit still means something. */
export function isHeld(state: BreakerState, permit: Permit): boolean {
  if (state.epoch !== permit.epoch) return false;
  if (state.kind !== 'half-open') return true;
  return state.leases.some(({ probe }) => probe === permit.probe);
}

/** A probe has come back. */
export function reported(
  state: BreakerState,
  permit: Permit,
  outcome: CallOutcome,
  now: number,
  rules: BreakerRules,
): BreakerState {
  if (state.kind !== 'half-open' || !isHeld(state, permit)) return state;
  if (outcome === 'failure') return opened(state.epoch + 1, now, rules);
  const successes = state.successes + (outcome === 'success' ? 1 : 0);
  if (successes >= rules.successes) return closed(state.epoch + 1);
  const leases = state.leases.filter(({ probe }) => probe !== permit.probe);
  return { ...state, leases, successes };
}

/** When the next call has a chance. */
export function nextChanceMicros(state: BreakerState, now: number): number {
  switch (state.kind) {
    case 'closed':
      return now;
    case 'open':
      return state.untilMicros;
    case 'half-open':
      return Math.min(...state.leases.map(({ expiresAtMicros }) => expiresAtMicros));
  }
}

function halfOpen(epoch: number): BreakerState {
  return { kind: 'half-open', epoch, leases: [], successes: 0, nextProbe: 1 };
}

/** A probe that began and never came back has failed; one that never began says nothing. */
function withoutExpired(state: HalfOpenState, now: number, rules: BreakerRules): BreakerState {
  const { leases } = state;
  if (!leases.some(({ expiresAtMicros }) => expiresAtMicros <= now)) return state;
  const isLost = leases.some((lease) => lease.expiresAtMicros <= now && lease.started);
  if (isLost) return opened(state.epoch + 1, now, rules);
  return { ...state, leases: leases.filter(({ expiresAtMicros }) => expiresAtMicros > now) };
}
