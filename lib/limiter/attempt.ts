import { Outcome } from '../algorithms/index.js';
import { EPOCH_CLOCK, type Clock } from '../common/clock.js';
import {
  CallKind,
  GiveBack,
  type BucketTable,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteStore,
} from '../stores/index.js';
import { type BoundLimit } from './bound-limit.js';
import { decisive, type Decision } from './decision.js';

/** One request, with its policy looked up and its arguments checked. */
export interface BoundCheck {
  readonly shared: BoundLimit;
  readonly key: string;
  readonly cost: number;
}

/** Told to callers that are refused because the store is away: it is looked for about that often. */
const CLOSED_RETRY_MICROS = 1_000_000;

/**
 * A take of one or more checks, all or nothing, with as little as possible taken and given back:
 * first every denial that is known here, then the buckets of this process, and last, with all the
 * rest in one call, the store.
 *
 * `decision` is set once it is made, which may be before `begin` returns.
 */
export class Attempt implements RemoteCall {
  readonly kind = CallKind.Take;
  readonly checks: BoundCheck[] = [];
  decision: Decision | undefined;
  private readonly here: BoundCheck[] = [];
  private readonly decisions: Decision[] = [];
  private readonly startedAt: number;
  private readonly isSingle: boolean;
  private resolve: ((decision: Decision) => void) | undefined;

  constructor(
    all: readonly BoundCheck[],
    private readonly store: RemoteStore | undefined,
    private readonly clock: Clock,
  ) {
    this.startedAt = clock.now();
    this.isSingle = all.length === 1;
    for (const check of all)
      (check.shared.table === undefined ? this.checks : this.here).push(check);
  }

  /** The decision, at once if it needed nobody else. */
  begin(): Decision | Promise<Decision> {
    if (this.deniedFromMemory() || !this.takeHere()) this.finish();
    else if (this.checks.length === 0 || this.store === undefined) this.finish();
    else this.store.submit(this);
    return this.decision ?? new Promise((resolve) => (this.resolve = resolve));
  }

  settled(answers: readonly RemoteAnswer[]): void {
    const allowed = answers.every((answer) => answer.allowed);
    answers.forEach((answer, index) => {
      const { shared, key, cost } = this.checks[index]!;
      // A check that would have passed says nothing about why the request was denied.
      if (answer.allowed && !allowed) return;
      if (!answer.allowed) {
        const untilMicros = this.startedAt + answer.waitMicros;
        shared.denials.remember(key, { untilMicros, cost, level: answer.level });
      }
      this.note(shared.decide(shared.limit, answer, EPOCH_CLOCK, 'store'));
    });
    if (!allowed) this.giveBackHere();
    this.finish();
  }

  failed(): void {
    if (!this.fallBack()) this.giveBackHere();
    this.finish();
  }

  /** The store took the tokens after all. If the request was refused meanwhile, it takes them back. */
  settledLate(answers: readonly RemoteAnswer[]): void {
    if (this.decision?.allowed === true || !answers.every((answer) => answer.allowed)) return;
    this.store?.submit(new GiveBack(this.checks));
  }

  private note(decision: Decision): void {
    this.decisions.push(decision);
  }

  private finish(): void {
    this.decision = this.isSingle ? this.decisions[0]! : decisive(this.decisions);
    this.resolve?.(this.decision);
  }

  private deniedFromMemory(): boolean {
    const now = this.startedAt;
    for (const { shared, key, cost } of this.checks) {
      const denial = shared.denials.find(key, cost, now);
      const waitMicros = denial === undefined ? undefined : shared.waitAfter(denial, cost, now);
      if (denial === undefined || waitMicros === undefined) continue;
      OUTCOME.nowMicros = now;
      OUTCOME.allowed = false;
      OUTCOME.level = denial.level;
      OUTCOME.waitMicros = waitMicros;
      this.note(shared.decide(shared.limit, OUTCOME, this.clock, 'local'));
    }
    return this.decisions.length > 0;
  }

  private takeHere(): boolean {
    return this.takeFrom(this.here, (check) => check.shared.table!, 'local');
  }

  private giveBackHere(): void {
    const now = this.clock.now();
    for (const { shared, key, cost } of this.here) shared.table!.refund(key, cost, now);
  }

  /** Each check as its policy's failure mode has it; those by local share all or nothing again. */
  private fallBack(): boolean {
    OUTCOME.nowMicros = this.clock.now();
    const byShare: BoundCheck[] = [];
    for (const check of this.checks) {
      const { shared } = check;
      if (shared.failureMode === 'local') {
        byShare.push(check);
        continue;
      }
      OUTCOME.allowed = shared.failureMode === 'open';
      OUTCOME.level = OUTCOME.allowed ? shared.limit.full : 0;
      OUTCOME.waitMicros = OUTCOME.allowed ? 0 : CLOSED_RETRY_MICROS;
      this.note(shared.decide(shared.limit, OUTCOME, this.clock, 'fallback'));
    }
    if (this.decisions.some((decision) => !decision.allowed)) return false;
    const nodes = this.store?.nodes ?? 1;
    return this.takeFrom(byShare, (check) => check.shared.fallbackTable(nodes), 'fallback');
  }

  /** Takes all checks from tables of this process, or none. */
  private takeFrom(
    checks: readonly BoundCheck[],
    tableOf: (check: BoundCheck) => BucketTable,
    source: 'local' | 'fallback',
  ): boolean {
    OUTCOME.nowMicros = this.clock.now();
    const known = this.decisions.length;
    const note = ({ shared }: BoundCheck, table: BucketTable): void => {
      this.note(shared.decide(table.limit, OUTCOME, this.clock, source));
    };
    for (const check of checks) {
      const table = tableOf(check);
      table.peek(check.key, check.cost, OUTCOME);
      if (!OUTCOME.allowed && !check.shared.shadow) note(check, table);
    }
    if (this.decisions.length > known) return false;
    for (const [index, check] of checks.entries()) {
      const table = tableOf(check);
      table.take(check.key, check.cost, OUTCOME);
      if (OUTCOME.allowed || check.shared.shadow) {
        note(check, table);
        continue;
      }
      // Two of the keys share an overflow bucket, which had enough for either but not for both.
      this.decisions.length = known;
      note(check, table);
      for (const taken of checks.slice(0, index)) {
        tableOf(taken).refund(taken.key, taken.cost, OUTCOME.nowMicros);
      }
      return false;
    }
    return true;
  }
}

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();
