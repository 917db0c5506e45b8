import { type LeaseGrant, type LeaseReport } from '../algorithms/leased-bucket.js';
import { type Limit } from '../algorithms/limit.js';
import { type StoreUnavailableError } from '../common/errors.js';

/**
 * A limit under the name by which the whole fleet knows its buckets. The limiter's `BoundLimit` is one; a store stands
 * below the limiter, and so knows no more of it than this.
 */
export interface SharedLimit {
  readonly id: string;
  readonly figures: Limit;
  /** Of the configuration that the limit is from; 0 if it is from none. */
  readonly revision: number;
  /** The report of tokens of a key that were used while the store was away, if there are any. */
  takeDebt?(key: string, clock: { now(): number }): RemoteCall | undefined;
}

/** The part of a take, a peek or a refund that concerns one bucket. */
export interface RemoteCheck {
  readonly limit: SharedLimit;
  readonly key: string;
  readonly cost: number;
  /** Of a debt: when the tokens were used, on the clock of this process. A reset since then has forgiven them. */
  readonly usedAtMicros?: number;
}

/** The store's answer for one check, on its own clock. */
export interface RemoteAnswer {
  readonly allowed: boolean;
  readonly level: number;
  readonly waitMicros: number;
  readonly nowMicros: number;
}

export enum CallKind {
  Take = 0,
  Peek = 1,
  Refund = 2,
  Lease = 3,
  /** A refund of what a late answer took, less what has flowed in again since the take. */
  LateRefund = 4,
  /** Books what was used although the store had not given it. */
  Debt = 5,
}

/**
 * One call to a shared store. A take of several checks is all or nothing.
 *
 * Exactly one of `settled` and `failed` is called, once, no later than the store's deadline, and
 * possibly before `submit` returns. After `failed` the store may still find out that the call was
 * carried out: then it calls `settledLate`; or that no answer will ever come: then it calls `unanswered`.
 * Where a call was split it does either for each part by itself, with the checks of that part.
 */
export interface RemoteCall {
  readonly kind: Exclude<CallKind, CallKind.Lease>;
  readonly checks: readonly RemoteCheck[];
  /** Of a late refund: the instant of the take, on the store's clock. */
  readonly takenAtMicros?: number;
  settled(answers: readonly RemoteAnswer[]): void;
  failed(error: StoreUnavailableError): void;
  settledLate(answers: readonly RemoteAnswer[], checks: readonly RemoteCheck[]): void;
  unanswered?(checks: readonly RemoteCheck[]): void;
}

/**
 * Says what became of leased tokens of a key, and asks for more. It is settled as other calls are,
 * and is never made twice: of tokens whose grant was lost nobody knows, and the store forgets them
 * when their time is over.
 */
export interface LeaseCall {
  readonly kind: CallKind.Lease;
  readonly limit: SharedLimit;
  readonly key: string;
  readonly want: number;
  readonly report: LeaseReport;
  settled(grant: LeaseGrant): void;
  failed(error: StoreUnavailableError): void;
  settledLate(grant: LeaseGrant): void;
}

export type StoreCall = RemoteCall | LeaseCall;

/** A call without a waiting caller. If it does not arrive, it is not made again. */
abstract class Unawaited {
  constructor(readonly checks: readonly RemoteCheck[]) {}

  settled(): void {}
  failed(): void {}
  settledLate(): void {}
}

/** Tokens that were taken a moment ago and are not needed. */
export class GiveBack extends Unawaited implements RemoteCall {
  readonly kind = CallKind.Refund;
}

/** Tokens that a late answer took for a request which had been denied by then. */
export class GiveBackLate extends Unawaited implements RemoteCall {
  readonly kind = CallKind.LateRefund;

  constructor(
    checks: readonly RemoteCheck[],
    readonly takenAtMicros: number,
  ) {
    super(checks);
  }
}

/** Tokens that a request has used by the share of its node, and that the store denied it later. */
export class Debt extends Unawaited implements RemoteCall {
  readonly kind = CallKind.Debt;
}

/** The store stopped or began to answer. Once per switch. */
export type StoreSwitch =
  | { readonly state: 'down'; readonly reason: StoreUnavailableError }
  | { readonly state: 'up'; readonly downMs: number };

/** State that the fleet shares. It decides elsewhere, and so may fail or be late. */
export interface RemoteStore {
  submit(call: StoreCall): void;
  /** Sends what was submitted, so that nothing that comes later travels with it. */
  flush(): void;
  /** Forgets a bucket, so that the key starts anew. */
  reset(limit: SharedLimit, key: string): Promise<void>;
  /** How many nodes use the store, as far as is known; at least 1. */
  readonly nodes: number;
  /**
   * The same for requests that need no call: this process counts as one of the nodes all the same. 0 as
   * long as the store has not said how many there are.
   */
  countedNodes(): number;
  /** Resolves once the store answers; rejects if that takes longer than `timeoutMs`. */
  ready(timeoutMs: number): Promise<void>;
  close(): Promise<void>;
}
