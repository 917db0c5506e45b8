import { type CallOutcome } from '../../lib/common/outcome-window.js';
import {
  type RecoveryAdmission,
  type RecoveryChange,
} from '../../lib/degradation/core/contract.js';
import { checkRecovery, type RecoveryOptions } from '../../lib/degradation/core/options.js';
import { Recovery } from '../../lib/degradation/core/recovery.js';
import { type ProbeLease } from '../../lib/stores/probe-lease.js';
import { ManualClock } from '../support/manual-clock.js';

export interface MachineOptions {
  readonly options?: Partial<RecoveryOptions>;
  readonly lease?: ProbeLease;
  /** Default: none, so that figures are round. */
  readonly jitter?: (turn: number) => number;
  readonly clock?: ManualClock;
}

/** A recovery of the resource `db` on a clock of our own. */
export class Machine {
  readonly clock: ManualClock;
  readonly recovery: Recovery;
  readonly changes: RecoveryChange[] = [];

  constructor({ options = {}, lease, jitter = () => 1, clock }: MachineOptions = {}) {
    this.clock = clock ?? new ManualClock();
    const figures = checkRecovery(options, 'recovery');
    const onChange = (change: RecoveryChange): void => void this.changes.push(change);
    const settings = { resource: 'db', figures, nodeId: 'a', lease, jitter, onChange };
    this.recovery = new Recovery(settings, this.clock);
  }

  /** One request that is done at once; what it was admitted as. */
  call(outcome: CallOutcome = 'success', durationMs = 1): RecoveryAdmission['kind'] {
    const admission = this.recovery.admit();
    if (admission.kind !== 'degraded') this.recovery.settled(admission, outcome, durationMs);
    return admission.kind;
  }

  calls(count: number, outcome: CallOutcome = 'success'): RecoveryAdmission['kind'][] {
    return Array.from({ length: count }, () => this.call(outcome));
  }

  /** So many seconds with a request at the end of each. */
  seconds(count: number, outcome: CallOutcome = 'success'): void {
    for (let i = 0; i < count; i++) {
      this.clock.advance(1000);
      this.call(outcome);
    }
  }

  /** Fails until the window trips. */
  breakDown(): this {
    this.calls(20, 'failure');
    return this;
  }

  /** The next probe, which is due now. */
  probe(outcome: CallOutcome): void {
    const admission = this.recovery.admit();
    if (admission.kind !== 'probe') throw new Error(`expected a probe, got ${admission.kind}`);
    this.recovery.settled(admission, outcome, 1);
  }

  /** To the first stage of the ramp. */
  toRamp(): this {
    this.breakDown();
    for (let i = 0; i < 3; i++) {
      this.clock.advance(10_000);
      this.probe('success');
    }
    return this;
  }

  get where(): string {
    const { phase, percent } = this.recovery;
    return phase === 'ramp' ? `ramp ${percent}` : phase;
  }
}
