import { type Outcome } from '../algorithms/algorithm.js';
import { type LeaseGrant, type LeaseReport } from '../algorithms/leased-bucket.js';
import { ownText } from '../common/ids.js';
import {
  CallKind,
  type LeaseCall,
  type SharedLimit,
  type StoreCall,
} from '../stores/remote-store.js';
import { MissCounts } from './miss-counts.js';
import { KeyLease } from './key-lease.js';
import { EARNING, KEY_PACE_MICROS, KEY_REFILL_PART } from './lease-figures.js';
import { LeaseSizing } from './lease-sizing.js';

/** Spent tokens are reported no later than this, also if no more tokens are needed. */
const REPORT_MICROS = 250_000;
/** A bucket of which a node's part would be smaller is not worth sharing out. */
const LEAST_SHARE = 10;
/** A key that got nothing for so long makes room for others. */
const FRUITLESS_MICROS = 1_000_000;

/** The part of a limiter that the leases of all its limits share. */
export interface LeaseDeps {
  /** Nodes that share the store. */
  readonly nodes: number;
  now(): number;
  submit(call: StoreCall): void;
  /** Takes room for one more key; false if there is none. */
  claim(): boolean;
  /** Gives the room of a key back. */
  release(): void;
}

/**
 * The keys of one limit of which this node holds tokens, taken ahead from the store, and decides by
 * itself. Requests for a key go to the store until its demand earns a lease; when the store has too
 * few tokens to lease, they go there again.
 */
export class LimitLeases {
  /** Requests that were allowed with leased tokens. */
  decided = 0;
  calls = 0;
  private readonly leases = new Map<string, KeyLease>();
  /** Made for the first request: most policies of a large configuration see none. */
  private misses: MissCounts | undefined = undefined;
  private readonly sizing: LeaseSizing;
  private closed = false;

  constructor(
    private limit: SharedLimit,
    private readonly sync: 'auto' | 'leased',
    private readonly deps: LeaseDeps,
  ) {
    this.sizing = new LeaseSizing(limit.figures, deps);
  }

  get size(): number {
    return this.leases.size;
  }

  /** Takes `cost` from the tokens here, at the instant of the outcome; false if they are not enough. */
  take(key: string, cost: number, outcome: Outcome): boolean {
    const lease = this.leases.get(key);
    if (lease === undefined) return false;
    lease.addDemand(cost, outcome.nowMicros);
    return this.spend(lease, cost, outcome);
  }

  /** The same for a request that was counted already: its call to the store has been denied. */
  takeAfterAll(key: string, cost: number, outcome: Outcome): boolean {
    const lease = this.leases.get(key);
    return lease !== undefined && this.spend(lease, cost, outcome);
  }

  tokensOf(key: string, now: number): number {
    return this.leases.get(key)?.tokensAt(now) ?? 0;
  }

  /** A request for the key has to go to the store. */
  missed(key: string, cost: number, now: number): void {
    const lease = this.leases.get(key);
    if (lease !== undefined) this.refill(lease, now);
    else if (!this.closed && this.earns(key, now) && this.deps.claim()) this.open(key, cost, now);
  }

  /** Undoes a take; false if it was reported already, so that the store has to undo it as well. */
  putBack(key: string, cost: number, now: number): boolean {
    return this.leases.get(key)?.putBack(cost, now) ?? false;
  }

  /** The key was reset in the store: its tokens here must not be used, and are not given back. */
  forget(key: string): void {
    const lease = this.leases.get(key);
    if (lease !== undefined) this.drop(lease, 'forgotten');
  }

  /** Gives back tokens that are not needed, reports those that were spent, and drops keys that cooled down. */
  sweep(now: number): void {
    for (const lease of this.leases.values()) {
      if (!lease.isBusy) this.tidy(lease, now);
    }
  }

  /** The same figures under another revision: tokens held stay held. */
  serve(limit: SharedLimit): void {
    this.limit = limit;
  }

  /** Gives everything back, and takes no more. */
  close(now: number): void {
    this.closed = true;
    for (const lease of this.leases.values()) this.giveUp(lease, now);
  }

  /** The answer to a call; `isLate` if it came after the deadline, when it had been given up. */
  settled(call: KeyCall, grant: LeaseGrant, isLate: boolean): void {
    const { lease, want } = call;
    const now = this.deps.now();
    if (!isLate) {
      lease.isBusy = false;
      this.payOwed(lease.key);
    }
    if (lease.end !== 'none') return this.settledAfterEnd(lease, grant);
    const { perToken, perMicro } = this.limit.figures;
    lease.inStore = Math.floor(grant.level / perToken);
    lease.receive(grant, call.sentAt, now);
    const missing = want - grant.granted;
    if (missing <= 0) return;
    lease.pausedUntil = now + Math.max(KEY_PACE_MICROS, (missing * perToken) / perMicro);
  }

  failed(lease: KeyLease): void {
    lease.isBusy = false;
    lease.pausedUntil = this.deps.now() + KEY_PACE_MICROS;
  }

  /** Tells the store of a debt, as a take does: a key that goes by leased tokens alone makes no takes. */
  private payOwed(key: string): void {
    const debt = this.limit.takeDebt?.(key, this.deps);
    if (debt !== undefined) this.deps.submit(debt);
  }

  private spend(lease: KeyLease, cost: number, outcome: Outcome): boolean {
    const left = lease.spend(cost, outcome.nowMicros);
    if (left < 0) return false;
    if (left <= lease.refillAt) this.refill(lease, outcome.nowMicros);
    const { figures } = this.limit;
    const level = (left + lease.inStore) * figures.perToken;
    outcome.allowed = true;
    outcome.level = level < figures.full ? level : figures.full;
    outcome.waitMicros = 0;
    return true;
  }

  private earns(key: string, now: number): boolean {
    const { sizing } = this;
    if (this.sync === 'leased') return sizing.most() >= 1;
    if (sizing.most() < LEAST_SHARE) return false;
    this.misses ??= new MissCounts(sizing.horizonMicros);
    return this.misses.add(key, now) >= EARNING;
  }

  private open(name: string, cost: number, now: number): void {
    const key = ownText(name);
    const lease = new KeyLease(key, now);
    lease.addDemand(cost, now);
    this.leases.set(key, lease);
    this.refill(lease, now);
  }

  private refill(lease: KeyLease, now: number): void {
    if (lease.isBusy || now < lease.pausedUntil) return;
    const target = this.sizing.targetOf(lease, now);
    lease.refillAt = Math.floor(target * KEY_REFILL_PART);
    const want = target - lease.tokensAt(now);
    if (want > 0) this.call(lease, want, 0, now);
  }

  private tidy(lease: KeyLease, now: number): void {
    const tokens = lease.tokensAt(now);
    const target = this.sizing.targetOf(lease, now);
    const isFruitless = tokens === 0 && now - lease.grantedAt >= FRUITLESS_MICROS;
    if (target === 0 || isFruitless || this.sizing.hasCooled(lease, now))
      return this.giveUp(lease, now);
    const surplus = tokens - Math.max(lease.demand.recent(now), target);
    const isReportDue = lease.hasUse && now - lease.calledAt >= REPORT_MICROS;
    if (surplus > 0 || isReportDue) this.call(lease, 0, Math.max(0, surplus), now);
  }

  private giveUp(lease: KeyLease, now: number): void {
    const tokens = lease.tokensAt(now);
    if (tokens > 0 || lease.hasUse) this.call(lease, 0, tokens, now);
    this.drop(lease, 'returned');
  }

  private drop(lease: KeyLease, end: 'returned' | 'forgotten'): void {
    lease.end = end;
    this.leases.delete(lease.key);
    this.deps.release();
  }

  /** Tokens that came for a key after its lease had ended. */
  private settledAfterEnd(lease: KeyLease, { granted, generation }: LeaseGrant): void {
    if (lease.end === 'forgotten' || granted === 0) return;
    const report = { generation, used: 0, returned: granted, olderUsed: 0, olderReturned: 0 };
    this.submit(lease, 0, report, this.deps.now());
  }

  private call(lease: KeyLease, want: number, giveBack: number, now: number): void {
    lease.isBusy = true;
    lease.calledAt = now;
    this.submit(lease, want, lease.report(giveBack), now);
  }

  private submit(lease: KeyLease, want: number, report: LeaseReport, now: number): void {
    this.calls++;
    this.deps.submit(new KeyCall(this, this.limit, lease, want, report, now));
  }
}

/** One call for one key; the instant is from before it was sent. */
class KeyCall implements LeaseCall {
  readonly kind = CallKind.Lease;

  constructor(
    private readonly keys: LimitLeases,
    readonly limit: SharedLimit,
    readonly lease: KeyLease,
    readonly want: number,
    readonly report: LeaseReport,
    readonly sentAt: number,
  ) {}

  get key(): string {
    return this.lease.key;
  }

  settled(grant: LeaseGrant): void {
    this.keys.settled(this, grant, false);
  }

  failed(): void {
    this.keys.failed(this.lease);
  }

  settledLate(grant: LeaseGrant): void {
    this.keys.settled(this, grant, true);
  }
}
