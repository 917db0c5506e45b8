import { unitsReturned } from '../../algorithms/leased-bucket.js';
import { type Limit, LimitChange } from '../../algorithms/limit.js';
import { type Cancel } from '../../common/clock.js';
import { type StoreUnavailableError } from '../../common/errors.js';
import {
  CallKind,
  type LeaseCall,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
  type SharedLimit,
  type StoreCall,
} from '../remote-store.js';
import { type RedisKeys } from './keys.js';
import { newCallNumber } from './wire.js';

/**
 * The calls of one event-loop turn on their way to Redis as one script call (lua/buckets.lua has
 * the format). A key or limit that several calls name travels once.
 */
export class Batch {
  /** The reply ends with it. */
  private readonly number = newCallNumber();
  private readonly calls: RemoteCall[] = [];
  /** Leases come last: requests that wait go before stock. */
  private readonly leases: LeaseCall[] = [];
  private checks = 0;
  /** Set once the calls have failed. */
  failed = false;
  answered = false;
  private readonly keys: string[] = [];
  private readonly keyNumbers = new Map<string, number>();
  private readonly limits: Limit[] = [];
  private readonly revisions: number[] = [];
  private readonly limitOfKey: number[] = [];
  private readonly plan: number[] = [];
  /** Calls from before and after a change of limits name the same key. */
  private isMixed = false;

  constructor(
    private readonly names: RedisKeys,
    readonly begunAt: number,
    readonly cancelDeadline: Cancel,
  ) {}

  /** The work of Redis for the batch. */
  get size(): number {
    return this.checks + this.leases.length;
  }

  add(call: StoreCall): void {
    if (call.kind === CallKind.Lease) this.leases.push(call);
    else this.addChecks(call);
  }

  private addChecks(call: RemoteCall): void {
    const { plan } = this;
    this.calls.push(call);
    if (call.kind === CallKind.Debt) return this.addDebts(call.checks);
    const isPlain = call.kind === CallKind.Take && call.checks.length === 1;
    if (!isPlain) plan.push(-1 - call.kind, call.checks.length);
    if (call.kind === CallKind.LateRefund) plan.push(call.takenAtMicros!);
    for (const { limit, key, cost } of call.checks) {
      plan.push(this.keyNumber(limit, this.names.bucket(limit, key)), cost);
      this.checks++;
    }
  }

  /** The clock of the store is another one, so a debt travels with its age. */
  private addDebts(checks: readonly RemoteCheck[]): void {
    for (const { limit, key, cost, usedAtMicros = this.begunAt } of checks) {
      const reset = this.keyNumber(limit, this.names.reset(limit, key));
      const age = Math.max(0, Math.floor(this.begunAt - usedAtMicros));
      const bucket = this.keyNumber(limit, this.names.bucket(limit, key));
      this.plan.push(-1 - CallKind.Debt, reset, age, bucket, cost);
      this.checks++;
    }
  }

  /** Number of keys, the keys, then the script's arguments. `now` is '' for Redis' own clock. */
  toArguments(now: string): (string | number)[] {
    for (const lease of this.leases) {
      const number = this.keyNumber(lease.limit, this.names.bucket(lease.limit, lease.key));
      const { want, report } = this.inLimitOf(number, lease);
      const { generation, used, returned, olderUsed, olderReturned } = report;
      this.plan.push(-1 - CallKind.Lease, number, want);
      this.plan.push(generation, used, returned, olderUsed, olderReturned);
    }
    this.plan.push(this.number);
    const limitNumbers = this.limits.length > 1 ? `[${this.limitOfKey.join()}]` : '';
    const plan = `[${this.plan.join()}]`;
    const args: (string | number)[] = [this.keys.length, ...this.keys, now, plan, limitNumbers];
    for (const [index, limit] of this.limits.entries()) {
      args.push(...figuresOf(limit, this.revisions[index]!));
    }
    return args;
  }

  private keyNumber(limit: SharedLimit, name: string): number {
    let number = this.keyNumbers.get(name);
    if (number === undefined) {
      number = this.keys.push(name);
      this.keyNumbers.set(name, number);
      this.limitOfKey.push(this.limitNumber(limit));
    } else if (this.limitOf(number) !== limit.figures) {
      this.settleOnNewest(number, limit);
    }
    return number;
  }

  private limitOf(keyNumber: number): Limit {
    return this.limits[this.limitOfKey[keyNumber - 1]! - 1]!;
  }

  /** A bucket can be loaded once, so all calls for it are decided under its newest limit. */
  private settleOnNewest(keyNumber: number, limit: SharedLimit): void {
    this.isMixed = true;
    const known = this.limitOfKey[keyNumber - 1]!;
    if (this.revisions[known - 1]! > limit.revision) return;
    this.limitOfKey[keyNumber - 1] = this.limitNumber(limit);
  }

  /** Leased tokens of another limit than the one that decides: the part of a bucket that they are. */
  private inLimitOf(keyNumber: number, lease: LeaseCall): Pick<LeaseCall, 'want' | 'report'> {
    const limit = this.limitOf(keyNumber);
    if (limit === lease.limit.figures) return lease;
    const change = new LimitChange(lease.limit.figures, limit);
    const { generation, used, returned, olderUsed, olderReturned } = lease.report;
    const back = Math.floor(unitsReturned(change, returned) / limit.perToken);
    const olderBack = Math.floor(unitsReturned(change, olderReturned) / limit.perToken);
    // Fractions of a token are lost: they count as used.
    const report = {
      generation,
      used: used + returned - back,
      returned: back,
      olderUsed: olderUsed + olderReturned - olderBack,
      olderReturned: olderBack,
    };
    return { want: 0, report };
  }

  /** A service has few limits, so looking through them is quickest. */
  private limitNumber({ figures, revision }: SharedLimit): number {
    const index = this.limits.indexOf(figures);
    if (index < 0) {
      this.revisions.push(revision);
      return this.limits.push(figures);
    }
    if (this.revisions[index]! < revision) this.revisions[index] = revision;
    return index + 1;
  }

  /** A level of a key's bucket in the units of the call's own limit. */
  private levelFor({ limit, key }: Pick<RemoteCheck, 'limit' | 'key'>, level: number): number {
    const { figures } = limit;
    const decidedUnder = this.limitOf(this.keyNumbers.get(this.names.bucket(limit, key))!);
    if (decidedUnder === figures) return level;
    return Math.min(figures.full, Math.floor(level / decidedUnder.perToken) * figures.perToken);
  }

  /** Whether a reply is the one to this batch, whole, and in figures that can be counted with. */
  isAnsweredBy(reply: readonly number[]): boolean {
    const last = reply.length - 1;
    if (reply[last] !== this.number) return false;
    let at = this.levels + 1;
    if (last < at || !reply.every(Number.isSafeInteger)) return false;
    for (let check = 0; at + 1 < last; at += 2) {
      if (reply[at]! <= check || reply[at]! > this.levels || reply[at + 1]! <= 0) return false;
      check = reply[at]!;
    }
    return at === last || reply[at]! < 0;
  }

  /** Of the reply, after the instant. */
  private get levels(): number {
    return this.checks + LEASE_ANSWERS * this.leases.length;
  }

  /** Hands every call its answers, in the order in which the calls came. */
  deliver(reply: readonly number[], to: 'settled' | 'settledLate'): void {
    const nowMicros = reply[0]!;
    let check = 0;
    let nextWait = this.levels + 1;
    for (const call of this.calls) {
      const answers: RemoteAnswer[] = [];
      for (let i = 0; i < call.checks.length; i++) {
        const level = reply[++check]!;
        const allowed = level >= 0;
        let found = allowed ? level : -1 - level;
        if (this.isMixed) found = this.levelFor(call.checks[i]!, found);
        const waitMicros = reply[nextWait] === check ? reply[nextWait + 1]! : 0;
        if (waitMicros > 0) nextWait += 2;
        answers.push({ allowed, level: found, waitMicros, nowMicros });
      }
      call[to](answers, call.checks);
    }
    for (const lease of this.leases) {
      const [found, granted, generation] = reply.slice(check + 1, check + 1 + LEASE_ANSWERS);
      check += LEASE_ANSWERS;
      const level = this.isMixed ? this.levelFor(lease, found!) : found!;
      lease[to]({ granted: granted!, generation: generation!, level });
    }
  }

  /** The revision of a bucket that is later than the one sent, if there is any; else 0. */
  laterRevision(reply: readonly number[]): number {
    const waits = reply.length - 2 - this.levels;
    return waits % 2 === 1 ? -reply[reply.length - 2]! : 0;
  }

  fail(error: StoreUnavailableError): void {
    this.failed = true;
    this.cancelDeadline();
    for (const call of this.calls) call.failed(error);
    for (const lease of this.leases) lease.failed(error);
  }

  /** After it has failed: no answer will come. */
  endUnanswered(): void {
    for (const call of this.calls) call.unanswered?.(call.checks);
  }
}

const LEASE_ANSWERS = 3;
/** A limit's revision travels in one figure with its algorithm, so one without costs nothing. */
const REVISION_STEP = 10;

/** A limit as lua/buckets.lua reads it. */
export function figuresOf(limit: Limit, revision: number): number[] {
  return [
    limit.algorithm + REVISION_STEP * revision,
    limit.perToken,
    limit.perMicro,
    limit.full,
    limit.maxDelayMicros,
    limit.periodMicros,
    limit.subWindowMicros,
    limit.ttlMs,
  ];
}
