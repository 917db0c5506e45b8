import { type BinaryArgument } from '../../../stores/redis/scripts.js';
import { AlgorithmCode, type Limit } from '../../../algorithms/limit.js';
import { CallKind } from '../../../stores/remote-store.js';
import { type PlainKeys } from './plain-keys.js';
import { RevisedTwin, type BucketCaller, type BucketVerdict } from './revised-buckets.js';

const LIMIT_SIZE = 8;
const REVISION_STEP = 10;

/** Told of every token that a call was given, or brought back; a refund is of tokens that were used. */
export type TokensMoved = (key: string, tokens: number, isRefund: boolean) => void;

interface BucketCall {
  readonly now: number;
  readonly keys: readonly string[];
  readonly callers: readonly BucketCaller[];
  readonly plan: readonly number[];
}

/** The work of lua/buckets.lua, by the algorithms that the script is held to: see its header. */
export class BucketCalls {
  private readonly limits = new Map<string, Limit>();

  constructor(
    private readonly leased = new RevisedTwin(true),
    private readonly plain = new RevisedTwin(false),
  ) {}

  copy(): BucketCalls {
    return new BucketCalls(this.leased.copy(), this.plain.copy());
  }

  forget(key: string): void {
    this.leased.forget(key);
    this.plain.forget(key);
  }

  /** `kept` has when buckets were reset. */
  settle(
    args: readonly BinaryArgument[],
    serverNow: number,
    kept: Pick<PlainKeys, 'get'>,
    moved: TokensMoved,
  ): number[] {
    const call = this.decode(args, serverNow);
    const levels: number[] = [];
    const waits: number[] = [];
    const answer = ({ allowed, level, waitMicros }: BucketVerdict): void => {
      levels.push(allowed ? level : -1 - level);
      if (waitMicros > 0) waits.push(levels.length, waitMicros);
    };
    const { plan } = call;
    for (let at = 0; at < plan.length - 1;) {
      const head = plan[at]!;
      if (head > 0) {
        this.take(call, at, 1, moved).forEach(answer);
        at += 2;
      } else if (head === -1 - CallKind.Lease) {
        levels.push(...this.lease(call, at + 1, moved));
        at += 8;
      } else if (head === -1 - CallKind.Debt) {
        this.owe(call, at + 1, kept);
        levels.push(0);
        at += 5;
      } else {
        const kind: CallKind = -1 - head;
        const count = plan[at + 1]!;
        const first = at + (kind === CallKind.LateRefund ? 3 : 2);
        this.each(call, kind, first, count, moved).forEach(answer);
        at = first + 2 * count;
      }
    }
    const reply = [call.now, ...levels, ...waits];
    const later = this.laterRevision(call);
    if (later > 0) reply.push(-later);
    // The number of the batch.
    reply.push(plan.at(-1)!);
    return reply;
  }

  private each(
    call: BucketCall,
    kind: CallKind,
    at: number,
    count: number,
    moved: TokensMoved,
  ): readonly BucketVerdict[] {
    if (kind === CallKind.Take) return this.take(call, at, count, moved);
    const { plan } = call;
    return Array.from({ length: count }, (_, index) => {
      const number = plan[at + 2 * index]!;
      const cost = plan[at + 2 * index + 1]!;
      const isBack = kind === CallKind.Refund || kind === CallKind.LateRefund;
      if (isBack) moved(call.keys[number - 1]!, -cost, kind === CallKind.Refund);
      return this.one(call, kind, number, cost, plan[at - 1]!);
    });
  }

  /** `takenAt` is that of a late refund. */
  private one(
    call: BucketCall,
    kind: CallKind,
    number: number,
    cost: number,
    takenAt: number,
  ): BucketVerdict {
    const [key, caller, twin] = this.bucket(call, number);
    switch (kind) {
      case CallKind.Refund:
        return twin.refund(caller, key, cost, call.now);
      case CallKind.LateRefund:
        return twin.refundLate(caller, key, cost, call.now, takenAt);
      default:
        return twin.take(caller, key, cost, call.now, true);
    }
  }

  /** A reset forgives what was used before it. */
  private owe(call: BucketCall, at: number, kept: Pick<PlainKeys, 'get'>): void {
    const { keys, now, plan } = call;
    const [reset, age, number, cost] = plan.slice(at, at + 4) as [number, number, number, number];
    const resetAt = Number(kept.get(keys[reset - 1]!) ?? 0);
    if (resetAt <= now && resetAt > now - age) return;
    const [key, caller, twin] = this.bucket(call, number);
    twin.owe(caller, key, cost, now);
  }

  /** All checks are measured before any is taken; one that would have passed says what it found. */
  private take(
    call: BucketCall,
    at: number,
    count: number,
    moved: TokensMoved,
  ): readonly BucketVerdict[] {
    const { plan, now } = call;
    const measured: BucketVerdict[] = [];
    for (let i = at; i < at + 2 * count; i += 2) {
      const [key, caller, twin] = this.bucket(call, plan[i]!);
      measured.push(twin.take(caller, key, plan[i + 1]!, now, true));
    }
    const isGranted = measured.every(({ allowed }) => allowed);
    return measured.map((verdict, index) => {
      const cost = plan[at + 2 * index + 1]!;
      const [key, caller, twin] = this.bucket(call, plan[at + 2 * index]!);
      if (isGranted) {
        moved(key, cost, false);
        return twin.take(caller, key, cost, now, false);
      }
      if (!verdict.allowed) return verdict;
      return { ...verdict, level: verdict.level + cost * caller.limit.perToken };
    });
  }

  private lease(call: BucketCall, at: number, moved: TokensMoved): readonly number[] {
    const [number, want, generation, used, returned, olderUsed, olderReturned] = call.plan.slice(
      at,
      at + 7,
    ) as [number, number, number, number, number, number, number];
    const [key, caller, twin] = this.bucket(call, number);
    const report = { generation, used, returned, olderUsed, olderReturned };
    const grant = twin.lease(caller, key, report, want, call.now);
    moved(key, grant.granted - returned - olderReturned, false);
    return [grant.level, grant.granted, grant.generation];
  }

  private bucket(call: BucketCall, number: number): [string, BucketCaller, RevisedTwin] {
    const caller = call.callers[number - 1]!;
    const isLeasable = caller.limit.algorithm === AlgorithmCode.TokenBucket;
    return [call.keys[number - 1]!, caller, isLeasable ? this.leased : this.plain];
  }

  private laterRevision({ keys, callers }: BucketCall): number {
    let latest = 0;
    keys.forEach((key, index) => {
      const { limit, revision } = callers[index]!;
      const twin = limit.algorithm === AlgorithmCode.TokenBucket ? this.leased : this.plain;
      const known = twin.revisionOf(key);
      if (known > revision) latest = Math.max(latest, known);
    });
    return latest;
  }

  private decode(args: readonly BinaryArgument[], serverNow: number): BucketCall {
    const count = Number(args[0]);
    const keys = args.slice(1, 1 + count).map(String);
    const [now, plan, limitNumbers, ...figures] = args.slice(1 + count);
    const limits: BucketCaller[] = [];
    for (let at = 0; at < figures.length; at += LIMIT_SIZE) {
      limits.push(this.limitOf(figures.slice(at, at + LIMIT_SIZE).map(Number)));
    }
    const numbers = limitNumbers === '' ? [] : (JSON.parse(String(limitNumbers)) as number[]);
    return {
      now: now === '' ? serverNow : Number(now),
      keys,
      callers: keys.map((_, index) => limits[(numbers[index] ?? 1) - 1]!),
      plan: JSON.parse(String(plan)) as number[],
    };
  }

  /** One object for the same figures: whoever compares limits is done at once. */
  private limitOf(figures: readonly number[]): BucketCaller {
    const [head, perToken, perMicro, full, maxDelayMicros, periodMicros, subWindowMicros, ttlMs] =
      figures as [number, number, number, number, number, number, number, number];
    const revision = Math.floor(head / REVISION_STEP);
    const algorithm: AlgorithmCode = head - revision * REVISION_STEP;
    const name = `${algorithm},${figures.slice(1).join()}`;
    let limit = this.limits.get(name);
    if (limit === undefined) {
      const capacity = full / perToken;
      const perMs = perMicro * 1000;
      const subWindows = subWindowMicros === 0 ? 0 : Math.ceil(periodMicros / subWindowMicros);
      limit = {
        ...{ algorithm, capacity, perToken, perMicro, perMs, full },
        ...{ maxDelayMicros, periodMicros, subWindowMicros, subWindows, ttlMs },
      };
      this.limits.set(name, limit);
    }
    return { limit, revision };
  }
}
