import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import {
  CallKind,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteStore,
} from '../stores/remote-store.js';
import { MultiTake } from './take-all.js';
import { type Decision } from './decision.js';
import { takeLeasedAfterAll } from './leased-take.js';
import { payOwed } from './owed-debt.js';
import { knownDenial, rememberDenial, type BoundCheck } from './remembered-denial.js';

/** A take of one bucket of the store: most requests are that, and need none of Attempt's lists. */
export class SingleTake implements RemoteCall {
  readonly kind = CallKind.Take;
  readonly checks: readonly [BoundCheck];
  private decision: Decision | undefined;
  /** How it was decided when the store could not answer. */
  private withoutStore: MultiTake | undefined;
  private resolve: ((decision: Decision) => void) | undefined;
  private generation = 0;

  constructor(
    check: BoundCheck,
    private readonly store: RemoteStore,
    private readonly clock: Clock,
  ) {
    this.checks = [check];
  }

  /** The decision, at once if it needed nobody else. */
  begin(): Decision | Promise<Decision> {
    const { limit, key, cost } = this.checks[0];
    const denied = knownDenial(this.checks[0], this.clock);
    if (denied !== undefined) {
      limit.count(false, 'local');
      return denied;
    }
    this.generation = limit.denials.generationOf(key);
    this.store.submit(this);
    limit.leases?.missed(key, cost, this.clock.now());
    return this.decision ?? new Promise((resolve) => (this.resolve = resolve));
  }

  settled(answers: readonly RemoteAnswer[]): void {
    const [check] = this.checks;
    const answer = answers[0]!;
    payOwed(check, this.store, this.clock);
    if (!answer.allowed) {
      rememberDenial(check, this.generation, answer, this.clock);
      const taken = takeLeasedAfterAll(check, this.clock);
      if (taken !== undefined) return this.finish(taken);
    }
    this.finish(check.limit.decide(check.limit.figures, answer, EPOCH_CLOCK, 'store'));
  }

  failed(): void {
    const { checks, store, clock } = this;
    this.withoutStore = new MultiTake(checks, false, store, clock);
    this.finish(this.withoutStore.decideWithoutStore());
  }

  settledLate(answers: readonly RemoteAnswer[]): void {
    this.withoutStore?.settledLate(answers, this.checks);
  }

  unanswered(): void {
    this.withoutStore?.unanswered(this.checks);
  }

  private finish(decision: Decision): void {
    this.decision = decision;
    this.resolve?.(decision);
  }
}
