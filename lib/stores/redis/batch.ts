import { type Limit } from '../../algorithms/index.js';
import { type Cancel } from '../../common/clock.js';
import { CallKind, type RemoteAnswer, type RemoteCall, type SharedLimit } from '../remote-store.js';
import { type RedisKeys } from './keys.js';

/**
 * The calls of one event-loop turn on their way to Redis as one script call (lua/buckets.lua has
 * the format). A key or limit that several calls name travels once.
 */
export class Batch {
  readonly calls: RemoteCall[] = [];
  /** Number of checks so far; what Redis will be busy with. */
  size = 0;
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

  add(call: RemoteCall): void {
    const { plan } = this;
    this.calls.push(call);
    const isPlain = call.kind === CallKind.Take && call.checks.length === 1;
    if (!isPlain) plan.push(-1 - call.kind, call.checks.length);
    for (const { shared, key, cost } of call.checks) {
      plan.push(this.keyNumber(shared, key), cost);
      this.size++;
    }
  }

  /** Number of keys, the keys, then the script's arguments. `now` is '' for Redis' own clock. */
  toArguments(now: string): (string | number)[] {
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
    let nextWait = this.size + 1;
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
  }
}

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
