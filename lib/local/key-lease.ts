import {
  LEASE_TTL_MICROS,
  type LeaseGrant,
  type LeaseReport,
} from '../algorithms/leased-bucket.js';
import { DemandEstimate } from './demand-estimate.js';

/** A little less than the store allows, should the two clocks not run quite alike. */
const USE_MICROS = LEASE_TTL_MICROS * 0.99;

/** Tokens of one generation. Those spent are counted here until they have been reported. */
class Purse {
  tokens = 0;
  used = 0;
  /** Local instant from which on the tokens must not be used. */
  expiresAt = 0;

  add(tokens: number, expiresAt: number): void {
    this.tokens += tokens;
    // The store counts tokens of one generation together, and for at least one lease time after the
    // last of them was granted; so the latest call speaks for all of them.
    this.expiresAt = Math.max(this.expiresAt, expiresAt);
  }

  spend(tokens: number): void {
    this.tokens -= tokens;
    this.used += tokens;
  }

  dropIfExpired(now: number): void {
    if (now >= this.expiresAt) this.tokens = 0;
  }

  /** Takes up to so many out of it, to give them back. */
  giveBack(most: number): number {
    const tokens = Math.min(most, this.tokens);
    this.tokens -= tokens;
    return tokens;
  }

  reported(): number {
    const { used } = this;
    this.used = 0;
    return used;
  }

  empty(): void {
    this.tokens = 0;
    this.used = 0;
    this.expiresAt = 0;
  }
}

/** The tokens of one key that this node holds, by generation: the newest one and the one before. */
export class KeyLease {
  readonly demand = new DemandEstimate();
  /** The least cost of a request; a lease that does not cover it is of no use. */
  leastCost = Infinity;
  /** Whole tokens that were left in the store when it last answered. */
  inStore = 0;
  /** Time for more when so many are left. */
  refillAt = 0;
  /** A call is on its way. */
  isBusy = false;
  /** No call for more before this instant. */
  pausedUntil = 0;
  calledAt = 0;
  grantedAt: number;
  /** The lease has ended: tokens that a call still brings go back, or were forgotten in the store. */
  end: 'none' | 'returned' | 'forgotten' = 'none';
  private generation = -1;
  private newest = new Purse();
  private older = new Purse();

  constructor(
    readonly key: string,
    readonly openedAt: number,
  ) {
    this.grantedAt = openedAt;
  }

  addDemand(cost: number, now: number): void {
    this.demand.add(cost, now);
    if (cost < this.leastCost) this.leastCost = cost;
  }

  /** Tokens that may be used now. */
  tokensAt(now: number): number {
    this.newest.dropIfExpired(now);
    this.older.dropIfExpired(now);
    return this.newest.tokens + this.older.tokens;
  }

  /** Spends the tokens first that expire first. Returns how many are left, or -1 if there are too few. */
  spend(cost: number, now: number): number {
    const left = this.tokensAt(now) - cost;
    if (!(left >= 0)) return -1;
    const fromOlder = Math.min(cost, this.older.tokens);
    this.older.spend(fromOlder);
    this.newest.spend(cost - fromOlder);
    return left;
  }

  /** Undoes a spending that was not reported yet; false if there is none to undo. */
  putBack(cost: number, now: number): boolean {
    const { newest } = this;
    if (!(newest.used >= cost) || now >= newest.expiresAt) return false;
    newest.spend(-cost);
    return true;
  }

  get hasUse(): boolean {
    return this.newest.used > 0 || this.older.used > 0;
  }

  /** The report of the next call: all that was spent, and tokens to give back, those first that expire first. */
  report(giveBack: number): LeaseReport {
    const { generation, newest, older } = this;
    const olderReturned = older.giveBack(giveBack);
    return {
      generation,
      used: newest.reported(),
      returned: newest.giveBack(giveBack - olderReturned),
      olderUsed: older.reported(),
      olderReturned,
    };
  }

  /** Adds a grant to a call that was sent at `sentAt`, unless its tokens are void by now. */
  receive({ granted, generation }: LeaseGrant, sentAt: number, now: number): void {
    const expiresAt = sentAt + USE_MICROS;
    if (now >= expiresAt) return;
    if (generation !== this.generation && generation !== this.generation - 1) {
      this.turnTo(generation);
    }
    if (granted === 0) return;
    this.grantedAt = now;
    (generation === this.generation ? this.newest : this.older).add(granted, expiresAt);
  }

  /** Tokens two or more generations old no longer count in the store, so they must not here. */
  private turnTo(generation: number): void {
    const isNext = generation === this.generation + 1;
    const emptied = this.older;
    this.older = this.newest;
    this.newest = emptied;
    emptied.empty();
    if (!isNext) this.older.empty();
    this.generation = generation;
  }
}
