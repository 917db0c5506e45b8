import { algorithmOf } from '../../../algorithms/algorithm-of.js';
import { Outcome } from '../../../algorithms/algorithm.js';
import {
  changeLeased,
  generationAt,
  leaseTokens,
  oweLeased,
  rebaseLeased,
  refundLeased,
  refundLeasedLate,
  settleLeased,
  startLeased,
  takeLeased,
  unitsReturned,
  type LeasedState,
  type LeaseGrant,
  type LeaseReport,
} from '../../../algorithms/leased-bucket.js';
import { AlgorithmCode, isSameLimit, type Limit, LimitChange } from '../../../algorithms/limit.js';

/** The answer of a bucket to a check, in the units of the caller's limit. */
export interface BucketVerdict {
  readonly allowed: boolean;
  readonly level: number;
  readonly waitMicros: number;
}

/** A bucket whose limit changes, as its algorithm keeps it. */
interface SimulatedBucket {
  copy(): SimulatedBucket;
  take(limit: Limit, cost: number, outcome: Outcome, isPeek: boolean): void;
  refund(limit: Limit, now: number, cost: number): void;
  refundLate(limit: Limit, now: number, cost: number, takenAt: number): void;
  owe(limit: Limit, now: number, cost: number): void;
  /** From a limit that the bucket has known. */
  change(change: LimitChange, now: number): void;
  /** From one without a revision: its rate is not known, so time counts under the new one. */
  changeUnknown(change: LimitChange, now: number): void;
}

class LeasedBucket implements SimulatedBucket {
  private state: LeasedState;

  get aheadMicros(): number {
    return this.state.aheadMicros;
  }

  constructor(limit: Limit, now: number) {
    this.state = startLeased(limit, now);
  }

  copy(): LeasedBucket {
    return Object.assign(Object.create(LeasedBucket.prototype) as LeasedBucket, this);
  }

  take(limit: Limit, cost: number, outcome: Outcome, isPeek: boolean): void {
    const after = takeLeased(limit, this.state, cost, outcome);
    this.state = isPeek ? rebaseLeased(this.state, outcome.nowMicros) : after;
  }

  refund(limit: Limit, now: number, cost: number): void {
    this.state = refundLeased(limit, this.state, now, cost);
  }

  refundLate(limit: Limit, now: number, cost: number, takenAt: number): void {
    this.state = refundLeasedLate(limit, this.state, now, cost, takenAt);
  }

  owe(limit: Limit, now: number, cost: number): void {
    this.state = oweLeased(limit, this.state, now, cost);
  }

  change(change: LimitChange, now: number): void {
    this.state = changeLeased(change, this.state, now);
  }

  changeUnknown(change: LimitChange, now: number): void {
    const changed = changeLeased(change, this.state, this.state.last);
    this.state = settleLeased(change.to, changed, now);
  }

  lease(
    limit: Limit,
    now: number,
    report: LeaseReport,
    want: number,
    unitsOf?: (tokens: number) => number,
  ): { grant: LeaseGrant; isChanged: boolean } {
    const { state, grant } = leaseTokens(limit, this.state, now, report, want, unitsOf);
    const isChanged = state !== this.state;
    this.state = state;
    return { grant, isChanged };
  }
}

class PlainBucket implements SimulatedBucket {
  private state: Float64Array;

  constructor(limit: Limit, now: number) {
    const algorithm = algorithmOf(limit.algorithm);
    this.state = new Float64Array(algorithm.width(limit));
    algorithm.start(limit, this.state, 0, now);
  }

  copy(): PlainBucket {
    const copy = Object.create(PlainBucket.prototype) as PlainBucket;
    return Object.assign(copy, { state: this.state.slice() });
  }

  take(limit: Limit, cost: number, outcome: Outcome, isPeek: boolean): void {
    const algorithm = algorithmOf(limit.algorithm);
    algorithm.measure(limit, this.state, 0, cost, outcome);
    if (outcome.allowed && !isPeek) algorithm.commit(limit, this.state, 0, cost, outcome);
  }

  refund(limit: Limit, now: number, cost: number): void {
    algorithmOf(limit.algorithm).refund(limit, this.state, 0, now, cost);
  }

  refundLate(limit: Limit, now: number, cost: number, takenAt: number): void {
    algorithmOf(limit.algorithm).refundLate(limit, this.state, 0, now, cost, takenAt);
  }

  owe(limit: Limit, now: number, cost: number): void {
    algorithmOf(limit.algorithm).owe(limit, this.state, 0, now, cost);
  }

  change(change: LimitChange, now: number): void {
    const algorithm = algorithmOf(change.to.algorithm);
    const width = algorithm.width(change.to);
    const into = width === this.state.length ? this.state : new Float64Array(width);
    algorithm.carry(change, this.state, 0, into, 0, now);
    this.state = into;
  }

  changeUnknown(change: LimitChange, now: number): void {
    const { from, to } = change;
    if (from.algorithm === AlgorithmCode.SlidingWindow) {
      this.keepCounts(change);
      return this.refund(to, now, 0);
    }
    this.change(change, this.state[1]!);
    this.change(new LimitChange(to, to), now);
  }

  /** The counts stay as they are; of a window cut in another way, all in one sub-window. */
  private keepCounts({ from, to }: LimitChange): void {
    const { periodMicros, subWindowMicros, subWindows } = from;
    if (periodMicros === to.periodMicros && subWindowMicros === to.subWindowMicros) return;
    const [newest = 0, used = 0] = this.state;
    const period = Math.floor(newest / subWindows);
    const begun = period * periodMicros + (newest - period * subWindows) * subWindowMicros;
    const algorithm = algorithmOf(to.algorithm);
    this.state = new Float64Array(algorithm.width(to));
    algorithm.start(to, this.state, 0, begun);
    const outcome = new Outcome();
    outcome.nowMicros = begun;
    algorithm.commit(to, this.state, 0, used, outcome);
  }
}

const NOTHING: BucketVerdict = { allowed: true, level: 0, waitMicros: 0 };

interface Known {
  bucket: SimulatedBucket;
  revision: number;
  limit: Limit;
}

/** A caller's limit, and the revision that it is from. */
export interface BucketCaller {
  readonly limit: Limit;
  readonly revision: number;
}

/** The rules of revisions beside the pure functions: what lua/buckets.lua has to agree with. */
export class RevisedTwin {
  private readonly known = new Map<string, Known>();

  constructor(private readonly canLease: boolean) {}

  /** The same buckets, which from now on go their own way. */
  copy(): RevisedTwin {
    const copy = new RevisedTwin(this.canLease);
    for (const [key, { bucket, revision, limit }] of this.known) {
      copy.known.set(key, { bucket: bucket.copy(), revision, limit });
    }
    return copy;
  }

  forget(key: string): void {
    this.known.delete(key);
  }

  /** Revision of the limit that the bucket is under; 0 if it has none. */
  revisionOf(key: string): number {
    return this.known.get(key)?.revision ?? 0;
  }

  take(
    caller: BucketCaller,
    key: string,
    cost: number,
    now: number,
    isPeek: boolean,
  ): BucketVerdict {
    const { bucket, limit } = this.find(caller, key, now);
    const outcome = outcomeAt(now);
    bucket.take(limit, cost, outcome, isPeek);
    const { allowed, waitMicros } = outcome;
    if (allowed && !isPeek) this.keep(caller, key, bucket);
    return { allowed, waitMicros, level: levelFor(caller.limit, limit, outcome.level) };
  }

  refund(caller: BucketCaller, key: string, cost: number, now: number): BucketVerdict {
    if (this.known.has(key)) {
      const { bucket, limit } = this.find(caller, key, now);
      bucket.refund(limit, now, cost);
    }
    return NOTHING;
  }

  /** A take that was made under another limit has no known worth under this one. */
  refundLate(
    caller: BucketCaller,
    key: string,
    cost: number,
    now: number,
    takenAt: number,
  ): BucketVerdict {
    if (this.known.has(key)) {
      const { bucket, limit } = this.find(caller, key, now);
      // A clock that has stepped back is noted by every call.
      bucket.take(limit, cost, outcomeAt(now), true);
      if (isSameLimit(limit, caller.limit)) bucket.refundLate(limit, now, cost, takenAt);
    }
    return NOTHING;
  }

  owe(caller: BucketCaller, key: string, cost: number, now: number): BucketVerdict {
    const { bucket, limit } = this.find(caller, key, now);
    bucket.owe(limit, now, cost);
    this.keep(caller, key, bucket);
    return NOTHING;
  }

  /** The generation of a lease that is granted now, unless the clock has just stepped back. */
  generationOf(key: string, now: number): number {
    const bucket = this.known.get(key)?.bucket;
    return generationAt(now + (bucket instanceof LeasedBucket ? bucket.aheadMicros : 0));
  }

  lease(
    caller: BucketCaller,
    key: string,
    report: LeaseReport,
    want: number,
    now: number,
  ): LeaseGrant {
    const { bucket, limit } = this.find(caller, key, now);
    const isEarlier = !isSameLimit(limit, caller.limit);
    const change = new LimitChange(caller.limit, limit);
    const unitsOf = isEarlier ? (tokens: number) => unitsReturned(change, tokens) : undefined;
    const done = (bucket as LeasedBucket).lease(limit, now, report, isEarlier ? 0 : want, unitsOf);
    if (done.isChanged) this.keep(caller, key, bucket);
    const { grant } = done;
    return { ...grant, level: levelFor(caller.limit, limit, grant.level) };
  }

  /** The bucket and the limit that it is under, after it has heard of the caller's. */
  private find({ limit, revision }: BucketCaller, key: string, now: number): Known {
    const known = this.known.get(key);
    if (known === undefined) {
      const bucket = this.canLease ? new LeasedBucket(limit, now) : new PlainBucket(limit, now);
      return { bucket, revision, limit };
    }
    if (revision > known.revision) {
      const change = new LimitChange(known.limit, limit);
      if (known.revision > 0) known.bucket.change(change, now);
      else known.bucket.changeUnknown(change, now);
      Object.assign(known, { revision, limit });
    }
    return known;
  }

  private keep({ limit, revision }: BucketCaller, key: string, bucket: SimulatedBucket): void {
    if (!this.known.has(key)) this.known.set(key, { bucket, limit, revision });
  }
}

function outcomeAt(now: number): Outcome {
  const outcome = new Outcome();
  outcome.nowMicros = now;
  return outcome;
}

/** Whole tokens of the limit that decided, and no more than the caller's own limit has. */
function levelFor(caller: Limit, decider: Limit, level: number): number {
  if (isSameLimit(caller, decider)) return level;
  return Math.min(caller.full, Math.floor(level / decider.perToken) * caller.perToken);
}
