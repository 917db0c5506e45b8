import { Outcome } from '../algorithms/index.js';
import { type Clock } from '../common/clock.js';
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
  private resolve: ((decision: Decision) => void) | undefined;

  constructor(
    all: readonly BoundCheck[],
    private readonly store: RemoteStore | undefined,
    private readonly clock: Clock,
  ) {
    this.startedAt = clock.now();
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
      const timestampMs = answer.nowMicros / 1000;
      this.note(shared.decide(shared.limit, answer, answer.nowMicros, timestampMs, 'store'));
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
    this.decision = decisive(this.decisions);
    this.resolve?.(this.decision);
  }

  private deniedFromMemory(): boolean {
    const now = this.startedAt;
    for (const { shared, key, cost } of this.checks) {
      const denial = shared.denials.find(key, cost, now);
      if (denial === undefined) continue;
      OUTCOME.allowed = false;
      OUTCOME.level = denial.level;
      OUTCOME.waitMicros = denial.untilMicros - now;
      this.note(shared.decide(shared.limit, OUTCOME, now, this.clock.epochMs(now), 'local'));
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
    const now = this.clock.now();
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
      this.note(shared.decide(shared.limit, OUTCOME, now, this.clock.epochMs(now), 'fallback'));
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
    const now = this.clock.now();
    const denied = checks.filter((check) => {
      tableOf(check).peek(check.key, check.cost, now, OUTCOME);
      return !OUTCOME.allowed && !check.shared.shadow;
    });
    for (const check of denied.length > 0 ? denied : checks) {
      const table = tableOf(check);
      table.take(check.key, check.cost, now, OUTCOME);
      const timestampMs = this.clock.epochMs(now);
      this.note(check.shared.decide(table.limit, OUTCOME, now, timestampMs, source));
    }
    return denied.length === 0;
  }
}

/** Read before the next use; nothing here awaits in between. */
const OUTCOME = new Outcome();
