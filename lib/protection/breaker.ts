import {
  CountWindow,
  TimeWindow,
  type OutcomeWindow,
  type CallOutcome,
} from '../common/outcome-window.js';
import {
  aged,
  begun,
  closed,
  granted,
  isHeld,
  leaseOf,
  nextChanceMicros,
  opened,
  reported,
  type BreakerKind,
  type BreakerRules,
  type BreakerState,
  type Permit,
} from './breaker-state.js';

/** By itself; or as an operator wants it: always open, never open, or only watched. */
export type BreakerMode = 'auto' | 'forced' | 'disabled' | 'observe';
export const BREAKER_MODES: readonly BreakerMode[] = ['auto', 'forced', 'disabled', 'observe'];

export interface BreakerSettings extends BreakerRules {
  readonly mode: BreakerMode;
  /** One of the two. */
  readonly windowCalls: number | undefined;
  readonly windowMicros: number;
  readonly minimumCalls: number;
  readonly errorRate: number;
  readonly slowRate: number;
  /** Infinity: no call is slow. */
  readonly slowMicros: number;
}

export type OnBreakerChange = (
  from: BreakerKind,
  to: BreakerKind,
  window: OutcomeWindow | undefined,
) => void;

/** Of calls that pass whatever the breaker thinks, and whose outcome it does not look at. */
const UNCOUNTED: Permit = { epoch: -1, probe: 0 };

/** Holds the state of one breaker. It has no timer: callers bring the time along. */
export class Breaker {
  private state: BreakerState = closed(0);
  private readonly window: OutcomeWindow;
  mode: BreakerMode;
  /** How often it has opened. */
  openings = 0;
  /** How many calls it would have turned away, were it not only observed. */
  observed = 0;

  constructor(
    readonly settings: BreakerSettings,
    private readonly onChange: OnBreakerChange,
  ) {
    this.mode = settings.mode;
    const { windowCalls, windowMicros } = settings;
    this.window =
      windowCalls === undefined ? new TimeWindow(windowMicros) : new CountWindow(windowCalls);
  }

  get kind(): BreakerKind {
    return this.mode === 'forced' ? 'open' : this.state.kind;
  }

  get epoch(): number {
    return this.state.epoch;
  }

  get counts(): { readonly calls: number; readonly failures: number; readonly slow: number } {
    const { calls, failures, slow } = this.window;
    return { calls, failures, slow };
  }

  /** The outcomes so far belong to another mode and are forgotten. */
  switchTo(mode: BreakerMode): void {
    if (mode === this.mode) return;
    const from = this.kind;
    this.mode = mode;
    this.window.clear();
    this.state = closed(this.state.epoch + 1);
    if (this.kind !== from) this.onChange(from, this.kind, undefined);
  }

  /** A permit, or undefined if the call may not go. */
  admit(now: number): Permit | undefined {
    if (this.mode === 'forced') return undefined;
    if (this.mode === 'disabled') return UNCOUNTED;
    if (this.state.kind === 'closed') return this.state.permit;
    this.become(aged(this.state, now, this.settings));
    const lease = leaseOf(this.state, now, this.settings);
    if (lease !== undefined) {
      this.state = granted(this.state, lease);
      return lease;
    }
    if (this.mode !== 'observe') return undefined;
    this.observed++;
    return UNCOUNTED;
  }

  /**
   * The call begins. False if its permit is no longer good, because the breaker has changed while
   * the call waited for a slot: then it needs another.
   */
  begin(permit: Permit, now: number): boolean {
    if (permit === UNCOUNTED) return this.mode !== 'forced';
    if (!isHeld(this.state, permit)) return false;
    if (permit.probe !== 0) this.state = begun(this.state, permit, now, this.settings);
    return true;
  }

  /** The call is over, or was given up. Outcomes of another epoch say nothing about this one. */
  report(permit: Permit, outcome: CallOutcome, slow: boolean, now: number): void {
    const { state } = this;
    if (permit.epoch !== state.epoch) return;
    if (state.kind !== 'closed') {
      const seen = slow && outcome === 'success' ? 'failure' : outcome;
      this.become(reported(state, permit, seen, now, this.settings));
    } else if (outcome !== 'neutral') {
      this.window.record(now, outcome === 'failure', slow);
      if (this.isTooBad()) this.become(opened(state.epoch + 1, now, this.settings));
    }
  }

  /** How long until a call has a chance, in whole milliseconds. */
  retryAfterMs(now: number): number {
    const { openMicros } = this.settings;
    const micros = this.mode === 'forced' ? openMicros : nextChanceMicros(this.state, now) - now;
    return Math.max(1, Math.ceil(Math.min(micros, openMicros * 2) / 1000));
  }

  private isTooBad(): boolean {
    const { calls, failures, slow } = this.window;
    const { minimumCalls, errorRate, slowRate } = this.settings;
    return calls >= minimumCalls && (failures >= calls * errorRate || slow >= calls * slowRate);
  }

  private become(state: BreakerState): void {
    const from = this.state.kind;
    this.state = state;
    if (state.kind === from) return;
    if (state.kind === 'open') this.openings++;
    this.onChange(from, state.kind, from === 'closed' ? this.window : undefined);
    this.window.clear();
  }
}
