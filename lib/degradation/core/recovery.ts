import { type Clock } from '../../common/clock.js';
import { TimeWindow, type CallOutcome } from '../../common/outcome-window.js';
import { SOLE_PROBER, type ProbeLease } from '../../stores/probe-lease.js';
import { jitterOf } from '../../common/jitter.js';
import {
  type RecoveryAdmission,
  type DegradeLevel,
  type HealthProbe,
  type RecoveryChange,
  type RecoveryPhase,
  type RecoveryStats,
  type ResourceRecovery,
  type TripCause,
} from './contract.js';
import { ProbeTurn } from './probe-turn.js';
import { type RecoverySettings } from './options.js';
import {
  initialState,
  isProbeDue,
  leaseMs,
  lets,
  percentOf,
  reduce,
  timeMatters,
  type RecoveryEvent,
  type RecoveryRules,
  type RecoveryState,
} from './recovery-reducer.js';

export interface RecoveryDeps {
  readonly resource: string;
  readonly figures: RecoverySettings;
  /** Nodes with different names do not probe in step. */
  readonly nodeId: string;
  readonly lease?: ProbeLease;
  readonly onChange?: (change: RecoveryChange) => void;
  /** Tests only: the factor on the interval before a probe. */
  readonly jitter?: (turn: number) => number;
}

/** One resource: its state, the window that trips it, and the probes that bring it back. */
export class Recovery implements ResourceRecovery {
  readonly resource: string;
  /** A check by the user. Without one, requests of callers are the probes. */
  probe: HealthProbe | undefined;
  private readonly onChange: ((change: RecoveryChange) => void) | undefined;
  private readonly counts = new RecoveryCounts();
  private readonly turn: ProbeTurn;
  private readonly jitter: (turn: number) => number;
  private rules: RecoveryRules;
  private window: TimeWindow;
  private state: RecoveryState;
  private normal: RecoveryAdmission;
  private ramped: RecoveryAdmission = UNCOUNTED;
  private held: RecoveryAdmission = UNCOUNTED;
  private stopProbe: (() => void) | undefined;

  constructor(
    { resource, figures, nodeId, lease = SOLE_PROBER, onChange, jitter }: RecoveryDeps,
    private readonly clock: Clock,
  ) {
    this.resource = resource;
    this.onChange = onChange;
    this.jitter = jitter ?? ((turn) => jitterOf(`${nodeId}/${resource}/${turn}`));
    this.rules = { ...figures, jitter: this.jitter };
    this.window = new TimeWindow(figures.windowMs * 1000);
    this.state = initialState(clock.now());
    this.normal = admission('normal', this.state);
    this.turn = new ProbeTurn(resource, lease, () => this.dispatch({ type: 'postpone' }));
  }

  get phase(): RecoveryPhase {
    return this.state.phase;
  }

  get percent(): number {
    return percentOf(this.state, this.rules);
  }

  /** Whether time has something to do here. */
  get isActive(): boolean {
    const { phase } = this.state;
    return phase === 'degraded' || phase === 'probing' || phase === 'ramp';
  }

  admit(): RecoveryAdmission {
    switch (this.state.phase) {
      case 'normal':
        this.counts.normal++;
        return this.normal;
      case 'disabled':
        return UNCOUNTED;
      case 'forced':
        this.counts.held++;
        return this.held;
      default:
        return this.admitOnTheWay(this.clock.now());
    }
  }

  settled(
    admitted: RecoveryAdmission,
    outcome: CallOutcome,
    durationMs: number,
    nowMicros = this.clock.now(),
  ): void {
    if (admitted.epoch !== this.state.epoch) {
      if (admitted.epoch !== 0) this.counts.late++;
      return;
    }
    const isSlow = durationMs > this.rules.slowMs;
    if (admitted.kind === 'normal') {
      if (outcome !== 'neutral') this.watch(nowMicros, outcome === 'failure', isSlow);
      return;
    }
    const verdict = isSlow && outcome === 'success' ? 'failure' : outcome;
    if (admitted.kind === 'probe') return this.probeSettled(admitted, verdict);
    this.dispatch({ type: 'settled', admission: admitted, outcome: verdict });
  }

  trip(cause: TripCause): void {
    this.dispatch({ type: 'trip', cause });
  }

  force(level?: DegradeLevel): void {
    this.dispatch({ type: 'force', level });
  }

  disable(): void {
    this.dispatch({ type: 'disable' });
  }

  observe(): void {
    this.dispatch({ type: 'observe' });
  }

  resume(): void {
    this.dispatch({ type: 'resume' });
  }

  /** Applies the changes by time, and runs the user's probe if one is due. */
  tick(): void {
    const now = this.clock.now();
    this.look(now);
    if (this.probe === undefined) return;
    const permit = this.takePermit(now);
    if (permit !== undefined) this.runProbe(this.probe, permit);
  }

  use(figures: RecoverySettings): void {
    const { windowMs } = this.rules;
    this.rules = { ...figures, jitter: this.jitter };
    if (figures.windowMs !== windowMs) this.window = new TimeWindow(figures.windowMs * 1000);
  }

  stop(): void {
    this.stopProbe?.();
    this.turn.done();
  }

  stats(): RecoveryStats {
    const { phase, observing, epoch, cause, level, since } = this.state;
    return {
      ...{ resource: this.resource, phase, observing, percent: this.percent },
      ...{ epoch, cause, level, sinceMs: this.clock.epochMs(since) },
      ...this.counts.stats(this.turn.refused),
    };
  }

  private admitOnTheWay(now: number): RecoveryAdmission {
    this.look(now);
    switch (this.state.phase) {
      case 'ramp':
        return this.admitToRamp();
      case 'degraded':
      case 'probing':
        // Where the user has a probe, callers are not made to try it out.
        return (this.probe === undefined && this.takePermit(now)) || this.hold();
      default:
        return this.admit();
    }
  }

  private admitToRamp(): RecoveryAdmission {
    const stage = this.counts.stage(this.percent);
    const passes = lets(this.state, this.rules);
    this.dispatch({ type: 'request' });
    if (passes) {
      stage.admitted++;
      return this.ramped;
    }
    stage.held++;
    return this.state.observing ? UNCOUNTED : this.held;
  }

  private hold(): RecoveryAdmission {
    this.counts.held++;
    return this.state.observing ? UNCOUNTED : this.held;
  }

  private takePermit(now: number): RecoveryAdmission | undefined {
    if (!isProbeDue(this.state, now) || !this.turn.isOurs(now, leaseMs(this.rules))) {
      return undefined;
    }
    this.dispatch({ type: 'probe' });
    this.counts.probes.begun++;
    return admission('probe', this.state);
  }

  private probeSettled(admitted: RecoveryAdmission, outcome: CallOutcome): void {
    const { probes } = this.counts;
    if (admitted.permit !== this.state.permit) {
      this.counts.late++;
      return;
    }
    if (this.clock.now() >= this.state.permitUntil) probes.expired++;
    else if (outcome === 'success') probes.succeeded++;
    else if (outcome === 'failure') probes.failed++;
    else probes.neutral++;
    this.dispatch({ type: 'settled', admission: admitted, outcome });
  }

  private look(now: number): void {
    if (now < timeMatters(this.state, this.rules)) return;
    if (this.state.phase === 'probing') this.counts.probes.expired++;
    this.dispatch({ type: 'time' });
  }

  private watch(nowMicros: number, isFailure: boolean, isSlow: boolean): void {
    this.window.record(nowMicros, isFailure, isSlow);
    const cause = tripCauseOf(this.window, this.rules);
    if (cause !== undefined) this.trip(cause);
  }

  private runProbe(probe: HealthProbe, permit: RecoveryAdmission): void {
    this.stopProbe = runHealthProbe(probe, this.rules.probeTimeoutMs, this.clock, (isWell, ms) => {
      this.settled(permit, isWell ? 'success' : 'failure', ms);
    });
  }

  private dispatch(event: RecoveryEvent): void {
    const before = this.state;
    const next = reduce(before, event, this.clock.now(), this.rules);
    if (next === before) return;
    this.state = next;
    if (before.permit !== 0 && next.permit !== before.permit) this.turn.done();
    if (next.epoch !== before.epoch) this.enterPhase(next);
    if (
      next.epoch !== before.epoch ||
      next.stage !== before.stage ||
      next.observing !== before.observing
    ) {
      this.tell(before, next);
    }
  }

  private enterPhase(state: RecoveryState): void {
    this.normal = admission('normal', state);
    this.ramped = admission('ramped', state);
    this.held = heldBack(state);
    this.window.clear();
  }

  private tell(before: RecoveryState, { phase, epoch, cause, observing }: RecoveryState): void {
    const { resource, percent } = this;
    const change = { resource, from: before.phase, to: phase, percent, epoch, cause, observing };
    this.counts.note(change);
    this.onChange?.(change);
  }
}

/** Too many failures or slow calls, as of the call that has just ended; a success may make the volume. */
function tripCauseOf(
  { calls, failures, slow }: TimeWindow,
  { minCalls, errorRate, slowRate }: RecoveryRules,
): 'errors' | 'slow' | undefined {
  if (calls < minCalls) return undefined;
  if (failures >= errorRate * calls) return 'errors';
  return slow >= slowRate * calls ? 'slow' : undefined;
}

/** For requests that pass without being counted. No phase has the epoch 0. */
export const UNCOUNTED: RecoveryAdmission = Object.freeze({ kind: 'normal', epoch: 0, permit: 0 });

export function admission(
  kind: RecoveryAdmission['kind'],
  { epoch, permit }: RecoveryState,
): RecoveryAdmission {
  return Object.freeze({ kind, epoch, permit: kind === 'probe' ? permit : 0 });
}

/** For requests that are not let through. */
export function heldBack(state: RecoveryState): RecoveryAdmission {
  const { epoch, level, phase } = state;
  const reason = phase === 'forced' ? 'forced' : 'degraded';
  return Object.freeze({ kind: 'degraded', epoch, permit: 0, level, reason });
}

interface StageCount {
  readonly percent: number;
  entered: number;
  admitted: number;
  held: number;
}

/** The counts of a resource so far. */
export class RecoveryCounts {
  normal = 0;
  held = 0;
  late = 0;
  recovered = 0;
  readonly probes = { begun: 0, succeeded: 0, failed: 0, neutral: 0, expired: 0 };
  readonly trips: Record<TripCause, number> = {
    ...{ errors: 0, slow: 0, breaker: 0, overload: 0, operator: 0, relapse: 0 },
  };
  private readonly stages = new Map<number, StageCount>();

  stage(percent: number): StageCount {
    let stage = this.stages.get(percent);
    if (stage === undefined) {
      this.stages.set(percent, (stage = { percent, entered: 0, admitted: 0, held: 0 }));
    }
    return stage;
  }

  note({ from, to, percent, cause }: RecoveryChange): void {
    if (to === 'ramp') this.stage(percent).entered++;
    // A probe that fails is none: the resource had not come up again.
    const fell = to === 'degraded' && from !== 'forced' && from !== 'probing';
    if (fell && cause !== undefined) this.trips[cause]++;
    if (from === 'ramp' && to === 'normal') this.recovered++;
  }

  stats(
    refused: number,
  ): Pick<RecoveryStats, 'normal' | 'held' | 'late' | 'recovered'> &
    Pick<RecoveryStats, 'probes' | 'trips' | 'stages'> {
    const { normal, held, late, recovered } = this;
    const stages = [...this.stages.values()].sort((a, b) => a.percent - b.percent);
    return {
      ...{ normal, held, late, recovered },
      probes: { ...this.probes, refused },
      trips: { ...this.trips },
      stages: stages.map((stage) => ({ ...stage })),
    };
  }
}

/**
 * Runs a check of the user's and calls back once with its result: not well, if it is false, throws, rejects
 * or is not done in time. The function that comes back ends it without a call.
 */
export function runHealthProbe(
  probe: HealthProbe,
  timeoutMs: number,
  clock: Clock,
  found: (isWell: boolean, durationMs: number) => void,
): () => void {
  const startedAt = clock.now();
  const controller = new AbortController();
  let isOpen = true;
  const end = (isWell: boolean | undefined): void => {
    if (!isOpen) return;
    isOpen = false;
    cancel();
    if (isWell !== true) controller.abort();
    if (isWell !== undefined) found(isWell, (clock.now() - startedAt) / 1000);
  };
  const cancel = clock.after(timeoutMs, () => end(false));
  void begin(probe, controller.signal).then(
    (answer) => end(answer !== false),
    () => end(false),
  );
  return () => end(undefined);
}

/** A probe that throws at once has failed like one that rejects. */
async function begin(probe: HealthProbe, signal: AbortSignal): Promise<unknown> {
  return await probe(signal);
}
