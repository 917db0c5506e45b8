import { type Limit } from '../../algorithms/index.js';
import { type Cancel } from '../../common/clock.js';
import { type StoreUnavailableError } from '../../common/errors.js';
import {
  CallKind,
  type LeaseCall,
  type RemoteAnswer,
  type RemoteCall,
  type SharedLimit,
  type StoreCall,
} from '../remote-store.js';
import { type RedisKeys } from './keys.js';

/**
 * The calls of one event-loop turn on their way to Redis as one script call (lua/buckets.lua has
 * the format). A key or limit that several calls name travels once.
 */
export class Batch {
  private readonly calls: RemoteCall[] = [];
  /** They come last: who waits goes before who stocks up. */
  private readonly leases: LeaseCall[] = [];
  private checks = 0;
  /** Set once the calls were told that there is no answer. */
  failed = false;
  answered = false;
  private readonly keys: string[] = [];
  private readonly keyNumbers = new Map<string, number>();
  private readonly limits: Limit[] = [];
  private readonly limitOfKey: number[] = [];
  private readonly plan: number[] = [];

  constructor(
    private readonly names: RedisKeys,
    readonly begunAt: number,
    readonly cancelDeadline: Cancel,
  ) {}

  /** What Redis will be busy with. */
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
    const isPlain = call.kind === CallKind.Take && call.checks.length === 1;
    if (!isPlain) plan.push(-1 - call.kind, call.checks.length);
    for (const { shared, key, cost } of call.checks) {
      plan.push(this.keyNumber(shared, key), cost);
      this.checks++;
    }
  }

  /** Number of keys, the keys, then the script's arguments. `now` is '' for Redis' own clock. */
  toArguments(now: string): (string | number)[] {
    for (const { shared, key, want, report } of this.leases) {
      const { generation, used, returned, olderUsed, olderReturned } = report;
      this.plan.push(-1 - CallKind.Lease, this.keyNumber(shared, key), want);
      this.plan.push(generation, used, returned, olderUsed, olderReturned);
    }
    const limitNumbers = this.limits.length > 1 ? `[${this.limitOfKey.join()}]` : '';
    const plan = `[${this.plan.join()}]`;
    const args: (string | number)[] = [this.keys.length, ...this.keys, now, plan, limitNumbers];
    for (const limit of this.limits) args.push(...figuresOf(limit));
    return args;
  }

  private keyNumber(shared: SharedLimit, key: string): number {
    const name = this.names.bucket(shared, key);
    let number = this.keyNumbers.get(name);
    if (number === undefined) {
      number = this.keys.push(name);
      this.keyNumbers.set(name, number);
      this.limitOfKey.push(this.limitNumber(shared.limit));
    }
    return number;
  }

  /** A service has few limits, so looking through them is quickest. */
  private limitNumber(limit: Limit): number {
    const index = this.limits.indexOf(limit);
    return index < 0 ? this.limits.push(limit) : index + 1;
  }

  /** Hands every call its answers, in the order in which the calls came. */
  deliver(reply: readonly number[], to: 'settled' | 'settledLate'): void {
    const nowMicros = reply[0]!;
    let check = 0;
    let nextWait = this.checks + LEASE_ANSWERS * this.leases.length + 1;
    for (const call of this.calls) {
      const answers: RemoteAnswer[] = [];
      for (let i = 0; i < call.checks.length; i++) {
        const level = reply[++check]!;
        const allowed = level >= 0;
        const waitMicros = reply[nextWait] === check ? reply[nextWait + 1]! : 0;
        if (waitMicros > 0) nextWait += 2;
        answers.push({ allowed, level: allowed ? level : -1 - level, waitMicros, nowMicros });
      }
      call[to](answers);
    }
    for (const lease of this.leases) {
      const [level, granted, generation] = reply.slice(check + 1, check + 1 + LEASE_ANSWERS);
      check += LEASE_ANSWERS;
      lease[to]({ granted: granted!, generation: generation!, level: level! });
    }
  }

  fail(error: StoreUnavailableError): void {
    this.failed = true;
    this.cancelDeadline();
    for (const call of this.calls) call.failed(error);
    for (const lease of this.leases) lease.failed(error);
  }
}

const LEASE_ANSWERS = 3;

/** A limit as lua/buckets.lua reads it. */
export function figuresOf(limit: Limit): number[] {
  return [
    limit.algorithm,
    limit.perToken,
    limit.perMicro,
    limit.full,
    limit.maxDelayMicros,
    limit.subWindows,
    limit.tickMicros,
    limit.ttlMs,
  ];
}
