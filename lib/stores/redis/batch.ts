import { type Limit } from '../../algorithms/index.js';
import { type Cancel } from '../../common/clock.js';
import { type RemoteAnswer, type RemoteCall } from '../remote-store.js';
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
  private readonly keys = new Map<string, number>();
  private readonly limits = new Map<Limit, number>();
  private plan = '';

  constructor(
    private readonly names: RedisKeys,
    readonly cancelDeadline: Cancel,
  ) {}

  add(call: RemoteCall): void {
    this.calls.push(call);
    this.plan += `${call.kind} ${call.checks.length} `;
    for (const { shared, key, cost } of call.checks) {
      const keyNumber = numberOf(this.keys, this.names.bucket(shared, key));
      this.plan += `${keyNumber} ${numberOf(this.limits, shared.limit)} ${cost} `;
      this.size++;
    }
  }

  /** Number of keys, the keys, then the script's arguments. `now` is '' for Redis' own clock. */
  toArguments(now: string): (string | number)[] {
    const args: (string | number)[] = [this.keys.size, ...this.keys.keys(), now, this.plan];
    for (const limit of this.limits.keys()) {
      args.push(
        limit.algorithm,
        limit.perToken,
        limit.perMicro,
        limit.full,
        limit.maxDelayMicros,
        limit.subWindows,
        limit.tickMicros,
        limit.ttlMs,
      );
    }
    return args;
  }

  /** Hands every call its answers, in the order in which the calls came. */
  deliver(reply: readonly number[], to: 'settled' | 'settledLate'): void {
    const nowMicros = reply[0] ?? 0;
    let at = 1;
    for (const call of this.calls) {
      const answers: RemoteAnswer[] = [];
      for (let i = 0; i < call.checks.length; i++, at += 2) {
        const level = reply[at] ?? 0;
        const waitMicros = reply[at + 1] ?? 0;
        const allowed = level >= 0;
        answers.push({ allowed, level: allowed ? level : -1 - level, waitMicros, nowMicros });
      }
      call[to](answers);
    }
  }
}

function numberOf<K>(numbers: Map<K, number>, key: K): number {
  let number = numbers.get(key);
  if (number === undefined) {
    number = numbers.size + 1;
    numbers.set(key, number);
  }
  return number;
}
