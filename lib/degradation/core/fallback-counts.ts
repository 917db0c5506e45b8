import { LEVELS, REASONS, type DegradeLevel, type DegradeReason } from './contract.js';
import { type FallbackFault } from './fallback-runner.js';

type ByReason = Record<DegradeReason, number>;

export interface FallbackStats {
  /** Answers by level, and by why they were needed. */
  readonly answers: Readonly<Record<DegradeLevel, Readonly<ByReason>>>;
  /** Requests for which there was no answer. */
  readonly unanswered: Readonly<ByReason>;
  /** Why functions of levels 3 and 4 gave none. */
  readonly faults: Readonly<Record<FallbackFault, number>>;
}

/** Which level answered for what reason. */
export class FallbackCounts {
  private readonly answers: Record<DegradeLevel, ByReason> = {
    ...{ 1: byReason(), 2: byReason(), 3: byReason(), 4: byReason() },
  };
  private readonly unanswered = byReason();
  private readonly faults = { threw: 0, hung: 0, busy: 0, stream: 0, empty: 0 };

  answered(level: DegradeLevel, reason: DegradeReason): void {
    this.answers[level][reason]++;
  }

  unansweredFor(reason: DegradeReason): void {
    this.unanswered[reason]++;
  }

  /** Level 4 in words: callers are told that it is one. */
  worded(reason: DegradeReason, wasUnanswered: boolean): void {
    if (wasUnanswered) this.unanswered[reason]--;
    this.answers[4][reason]++;
  }

  fault(fault: FallbackFault): void {
    this.faults[fault]++;
  }

  stats(): FallbackStats {
    const answers = LEVELS.map((level) => [level, { ...this.answers[level] }]);
    return {
      answers: Object.fromEntries(answers) as FallbackStats['answers'],
      unanswered: { ...this.unanswered },
      faults: { ...this.faults },
    };
  }
}

function byReason(): ByReason {
  return Object.fromEntries(REASONS.map((reason) => [reason, 0])) as ByReason;
}
