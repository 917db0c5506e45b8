import { algorithmOf } from '../../lib/algorithms/algorithm-of.js';
import { Outcome } from '../../lib/algorithms/algorithm.js';
import {
  leaseTokens,
  oweLeased,
  refundLeased,
  refundLeasedLate,
  settleLeased,
  startLeased,
  takeLeased,
  type LeasedState,
  type LeaseGrant,
} from '../../lib/algorithms/leased-bucket.js';
import { AlgorithmCode } from '../../lib/algorithms/limit.js';
import { type Clock } from '../../lib/common/clock.js';
import { StoreUnavailableError } from '../../lib/common/errors.js';
import { splitCall } from '../../lib/stores/redis/split-call.js';
import {
  CallKind,
  type LeaseCall,
  type RemoteAnswer,
  type RemoteCall,
  type RemoteCheck,
  type RemoteStore,
  type SharedLimit,
  type StoreCall,
} from '../../lib/stores/remote-store.js';

/** The store's clock is another one than those of its callers. */
const STORE_EPOCH_MICROS = 1_700_000_000_000_000;

type Bucket = LeasedState | Float64Array;

/** The buckets of a store that carries calls out at once, by the pure functions of lib/algorithms. */
export class VirtualStore {
  private readonly buckets = new Map<string, Bucket>();

  constructor(private readonly clock: Pick<Clock, 'now'>) {}

  now(): number {
    return this.clock.now() + STORE_EPOCH_MICROS;
  }

  ask({ kind, checks, takenAtMicros }: RemoteCall): RemoteAnswer[] {
    const answers = checks.map((check) => this.measure(check));
    const isGranted = answers.every((answer) => answer.allowed);
    if (kind === CallKind.Peek || (kind === CallKind.Take && !isGranted)) return answers;
    for (const check of checks) this.change(kind, check, takenAtMicros ?? NaN);
    return answers;
  }

  lease({ limit, key, report, want }: LeaseCall): LeaseGrant {
    const bucket = this.bucketOf(limit, key) as LeasedState;
    const { state, grant } = leaseTokens(limit.figures, bucket, this.now(), report, want);
    this.buckets.set(nameOf(limit, key), state);
    return grant;
  }

  /** Tokens in a bucket of tokens; below zero if it owes some. */
  tokensIn(shared: SharedLimit, key: string): number {
    const bucket = this.bucketOf(shared, key) as LeasedState;
    return settleLeased(shared.figures, bucket, this.now()).level / shared.figures.perToken;
  }

  private bucketOf({ id, figures }: SharedLimit, key: string): Bucket {
    const known = this.buckets.get(nameOf({ id }, key));
    if (known !== undefined) return known;
    if (figures.algorithm === AlgorithmCode.TokenBucket) return startLeased(figures, this.now());
    const algorithm = algorithmOf(figures.algorithm);
    const state = new Float64Array(algorithm.width(figures));
    algorithm.start(figures, state, 0, this.now());
    return state;
  }

  private measure({ limit, key, cost }: RemoteCheck): RemoteAnswer {
    const { figures } = limit;
    const outcome = new Outcome();
    outcome.nowMicros = this.now();
    const bucket = this.bucketOf(limit, key);
    if (!(bucket instanceof Float64Array)) takeLeased(figures, bucket, cost, outcome);
    else algorithmOf(figures.algorithm).measure(figures, bucket, 0, cost, outcome);
    return outcome;
  }

  private change(kind: RemoteCall['kind'], check: RemoteCheck, takenAt: number): void {
    const { limit, key } = check;
    const bucket = this.bucketOf(limit, key);
    const changed =
      bucket instanceof Float64Array
        ? this.changePlain(kind, check, bucket, takenAt)
        : this.changeLeased(kind, check, bucket, takenAt);
    this.buckets.set(nameOf(limit, key), changed);
  }

  private changeLeased(
    kind: RemoteCall['kind'],
    { limit: { figures }, cost }: RemoteCheck,
    state: LeasedState,
    takenAt: number,
  ): LeasedState {
    const now = this.now();
    if (kind === CallKind.Refund) return refundLeased(figures, state, now, cost);
    if (kind === CallKind.LateRefund) return refundLeasedLate(figures, state, now, cost, takenAt);
    if (kind === CallKind.Debt) return oweLeased(figures, state, now, cost);
    const outcome = new Outcome();
    outcome.nowMicros = now;
    return takeLeased(figures, state, cost, outcome);
  }

  private changePlain(
    kind: RemoteCall['kind'],
    { limit: { figures }, cost }: RemoteCheck,
    state: Float64Array,
    takenAt: number,
  ): Float64Array {
    const algorithm = algorithmOf(figures.algorithm);
    const now = this.now();
    if (kind === CallKind.Refund) algorithm.refund(figures, state, 0, now, cost);
    else if (kind === CallKind.LateRefund) {
      algorithm.refundLate(figures, state, 0, now, cost, takenAt);
    } else if (kind === CallKind.Debt) algorithm.owe(figures, state, 0, now, cost);
    else {
      const outcome = new Outcome();
      outcome.nowMicros = now;
      algorithm.measure(figures, state, 0, cost, outcome);
      algorithm.commit(figures, state, 0, cost, outcome);
    }
    return state;
  }
}

function nameOf({ id }: Pick<SharedLimit, 'id'>, key: string): string {
  return `${id} ${key}`;
}

/** The time of a reply of a shard that is sent now. */
export type ReplyTime = (nowMs: number, shard: number) => number;

/**
 * One node's way to a store whose replies may come after the deadline. A call gets there at once; a
 * reply that takes no time is there before `submit` returns, and any other when `deliver` is called.
 */
export class LateConnection implements RemoteStore {
  private due: { atMs: number; task: () => void }[] = [];

  constructor(
    private readonly store: VirtualStore,
    private readonly clock: Pick<Clock, 'now'>,
    readonly nodes: number,
    private readonly deadlineMs: number,
    private readonly replyTime: ReplyTime,
    private readonly shardOf: (key: string) => number = () => 0,
  ) {}

  submit(call: StoreCall): void {
    if (call.kind === CallKind.Lease) {
      const grant = this.store.lease(call);
      return this.reply(this.shardOf(call.key), call, (to) => call[to](grant));
    }
    for (const [shard, part] of splitCall(call, this.shardOf, this)) {
      const answers = this.store.ask(part);
      this.reply(shard, part, (to) => part[to](answers, part.checks));
    }
  }

  /** All that is due by now. */
  deliver(): void {
    const nowMs = this.clock.now() / 1000;
    const due = this.due.filter(({ atMs }) => atMs <= nowMs).sort((a, b) => a.atMs - b.atMs);
    this.due = this.due.filter(({ atMs }) => atMs > nowMs);
    for (const { task } of due) task();
  }

  countedNodes(): number {
    return this.nodes;
  }

  flush(): void {}

  reset(): Promise<void> {
    return Promise.resolve();
  }

  ready(): Promise<void> {
    return Promise.resolve();
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  private reply(
    shard: number,
    call: Pick<StoreCall, 'failed'>,
    deliver: (to: 'settled' | 'settledLate') => void,
  ): void {
    const takesMs = this.replyTime(this.clock.now() / 1000, shard);
    if (takesMs === 0) return deliver('settled');
    if (takesMs <= this.deadlineMs) return this.after(takesMs, () => deliver('settled'));
    this.after(this.deadlineMs, () => call.failed(new StoreUnavailableError('late')));
    this.after(takesMs, () => deliver('settledLate'));
  }

  private after(ms: number, task: () => void): void {
    this.due.push({ atMs: this.clock.now() / 1000 + ms, task });
  }
}
