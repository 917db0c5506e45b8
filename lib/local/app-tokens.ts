import {
  type AppCall,
  type AppReply,
  type Consumption,
  type Need,
  type Shortage,
} from '../algorithms/quota/quota-protocol.js';
import { DemandEstimate } from './demand-estimate.js';
import { EARNING, HEADROOM, THIN } from './lease-figures.js';
import { OfflineShare, type ShareSettings } from './offline-share.js';

/** A request that waits for the store's answer. */
export interface AppWaiter {
  /** Tokens that the store has to add to those that were set aside here. */
  cost: number;
  /** Set once the request has been answered, by the store or by its deadline. */
  done: boolean;
  /** Tokens with which the request passed without the store; 0 if it did not. */
  byShare: number;
  answer(granted: boolean): void;
  /** Answers without the store. */
  fallBack(): void;
}

/** The figures of an app that a node goes by. */
export interface AppTokensSettings extends ShareSettings {
  /** Tokens per second. */
  readonly burst: number;
  /** How long the store's bucket takes to fill: what passed without the store that long ago is owed no more. */
  readonly storeFillMicros: number;
}

/** As long as a node counts that says nothing. */
const CALLING_MICROS = 10_000_000;
/** Beyond so many methods all others count as one: names may come from outside. */
const MOST_METHODS = 64;
const OTHER_METHODS = '(other)';

/** Consumption of an app on this node, until a call has reported it. */
class UsageCount {
  private cost = 0;
  /** Requests. */
  count = 0;
  private since = 0;
  private methods = new Map<string, { cost: number; count: number }>();

  add(cost: number, method: string | undefined): void {
    this.cost += cost;
    this.count++;
    if (method !== undefined) this.addMethod(cost, method);
  }

  /** Undefined if there was none. */
  take(now: number): Consumption | undefined {
    const { cost, count, methods, since } = this;
    this.since = now;
    if (count === 0) return undefined;
    this.cost = 0;
    this.count = 0;
    this.methods = new Map();
    const periodMs = since === 0 ? 0 : Math.round((now - since) / 1000);
    return {
      cost,
      count,
      periodMs,
      methods: Array.from(methods, ([method, use]) => ({ method, ...use })),
    };
  }

  private addMethod(cost: number, method: string): void {
    let use = this.methods.get(method);
    if (use === undefined) {
      const name = this.methods.size < MOST_METHODS ? method : OTHER_METHODS;
      use = this.methods.get(name) ?? { cost: 0, count: 0 };
      this.methods.set(name, use);
    }
    use.cost += cost;
    use.count++;
  }
}

/** Decisions on an app's requests, ever, in plain fields: each adds one to one of them, and whoever wants sums makes them. */
export class QuotaCounts {
  allowedLocal = 0;
  allowedStore = 0;
  allowedFallback = 0;
  deniedLocal = 0;
  deniedStore = 0;
  deniedFallback = 0;
  /** Of those denied, the cluster and not the app's own quota had not enough. */
  clusterLocal = 0;
  clusterStore = 0;
  /** Tokens of allowed requests. */
  used = 0;

  get allowed(): number {
    return this.allowedLocal + this.allowedStore + this.allowedFallback;
  }

  get denied(): number {
    return this.deniedLocal + this.deniedStore + this.deniedFallback;
  }

  allow(source: 'local' | 'store' | 'fallback', cost: number): void {
    this.used += cost;
    if (source === 'local') this.allowedLocal++;
    else if (source === 'store') this.allowedStore++;
    else this.allowedFallback++;
  }

  deny(source: 'local' | 'store' | 'fallback', isByCluster: boolean): void {
    if (source === 'fallback') {
      this.deniedFallback++;
    } else if (source === 'local') {
      this.deniedLocal++;
      if (isByCluster) this.clusterLocal++;
    } else {
      this.deniedStore++;
      if (isByCluster) this.clusterStore++;
    }
  }
}

/** The tokens that this node holds of one app, and the accounts that go with them. */
export class AppTokens {
  /** Leased and unspent. */
  tokens = 0;
  /** Used as far as the store knows, but not after all; the next call reports it. */
  refunded = 0;
  /** Granted to requests that had been denied by then, with the reply of this instant of the store. */
  private late = 0;
  private lateTakenMicros = 0;
  /** Passed while the store's answer was late, and not granted by it. */
  private owed = 0;
  /** Passed while the store was away, since that instant; no call has reported it yet. */
  private passedAway = 0;
  private passedAwaySince = 0;
  /** Local instant after which the tokens must not be used. */
  expiresAt = 0;
  /** Spent since the last call was sent. */
  used = 0;
  /** Tokens that ran out of time here; they go back with the next call, in case the store still counts them. */
  private stale = 0;
  /** Changes when the store knows nothing of the tokens of before, also of those set aside. */
  generation = 0;
  /** The store counts this node among those of the app. */
  isKnown = false;
  /** During overload: tokens per second beyond the guarantee, as of the last reply. */
  share = 0;
  isOverloaded = false;
  readonly usage = new UsageCount();
  /** Requests, ever; a denial by the level that had not enough. */
  readonly counts = new QuotaCounts();
  readonly demand = new DemandEstimate();
  readonly offline: OfflineShare;
  waiters: AppWaiter[] = [];
  shortage: Shortage = 'none';
  /**
   * The shortage of this reply or of the one before: one full grant among partial ones is luck, and
   * does not mean that there is enough.
   */
  lastShortage: Shortage = 'none';
  /** While there is a shortage: when it is worth asking again. */
  retryAt = 0;
  /** While there is a shortage: when a call may want stock again. */
  askAt = 0;
  /** The want of the last call, and the grant of one call while there is a shortage. */
  private wanted = 0;
  private given = 0;
  /** The last call wanted nothing, because the pace did not allow it: its reply does not end a shortage. */
  isHeldBack = false;
  /** Tokens of the app's own stock in the store when it last answered. */
  remaining = 0;
  /** The stock at or below which it is refilled, and the use from which on it is reported. */
  refillAt = 0;
  reportAt = Infinity;
  /** The last call did not lift the stock above the level at which it is refilled. */
  isStuck = false;
  /** The quota has no such app any more: the tokens here go back. */
  isRetired = false;
  /** The store has no limits for the app yet: it has its local share until then. */
  isUnlisted = false;
  guaranteed: number;
  burst: number;
  /** Nodes that may serve the app, as they are counted each second; by a reply, those that call for it may be more. */
  private registered: number;
  private calling = 0;
  private repliedMicros = 0;

  constructor(
    readonly index: number,
    readonly name: string,
    private settings: AppTokensSettings,
    nodes = 1,
  ) {
    this.guaranteed = settings.guaranteed;
    this.burst = settings.burst;
    this.registered = nodes;
    this.offline = new OfflineShare(settings, nodes);
  }

  /** Nodes that may serve the app, whether they ask for it or not. */
  get nodes(): number {
    return Math.max(this.registered, this.calling);
  }

  /** The most that a request may cost. */
  get maxCost(): number {
    return this.settings.maxCost;
  }

  /** Goes by other figures. Under a lower burst the tokens held shrink in proportion. */
  change(settings: AppTokensSettings, now: number): void {
    const { guaranteed, burst } = settings;
    if (burst < this.burst) {
      const kept = Math.floor((this.tokens * burst) / this.burst);
      this.stale += this.tokens - kept;
      this.tokens = kept;
    }
    this.guaranteed = guaranteed;
    this.burst = burst;
    this.settings = settings;
    this.isRetired = false;
    this.offline.lowerTo(settings, now);
  }

  /** The store goes by these figures too. */
  confirm(now: number): void {
    this.offline.change(this.settings, now);
  }

  retire(now: number): void {
    this.isRetired = true;
    this.guaranteed = 0;
    this.burst = 0;
    this.offline.lowerTo({ guaranteed: 0, maxCost: 0, fillMicros: 0 }, now);
  }

  /**
   * So many nodes may serve the app: each has its part while the store is away. A store that has lost
   * its state and counts anew may not know of all yet, and may be gone again before it does; so such a
   * count makes them no fewer.
   */
  shareWith(nodes: number, isAll: boolean, now: number): void {
    this.registered = isAll ? nodes : Math.max(nodes, this.registered);
    // A node without traffic gets no reply: those that called in the time of its last one may be gone.
    if (isAll && now - this.repliedMicros > CALLING_MICROS) this.calling = 0;
    this.offline.shareWith(this.nodes, now);
  }

  /** Spends tokens that are here. The hot path: a few comparisons and additions. */
  spend(cost: number, now: number): boolean {
    if (now >= this.expiresAt) this.drop();
    // A cost that is no number gets nothing.
    if (!(this.tokens >= cost)) return false;
    this.tokens -= cost;
    this.used += cost;
    return true;
  }

  /** A request of this cost has passed by share while the store was away. */
  passAway(cost: number, now: number): void {
    if (this.passedAway === 0) this.passedAwaySince = now;
    this.passedAway += cost;
  }

  /** Tokens of such a request were not used after all. */
  putBackToShare(tokens: number, now: number): void {
    this.offline.putBack(tokens, now);
    this.passedAway = Math.max(0, this.passedAway - tokens);
  }

  /**
   * The part of it that is a debt. Once the store's bucket has had the time to become full, what flowed in
   * there was lost, and what the share got back since was used for good.
   */
  private owedAway(now: number): number {
    const { passedAway, passedAwaySince, settings } = this;
    if (passedAway === 0) return 0;
    this.passedAway = 0;
    const isLong = now - passedAwaySince >= settings.storeFillMicros;
    return isLong ? Math.min(passedAway, this.offline.missing(now)) : passedAway;
  }

  /** Sets the tokens that are here aside for a request that needs more. */
  setAside(): number {
    const { tokens } = this;
    this.tokens = 0;
    return tokens;
  }

  /** Tokens set aside were used after all, or are here again unless they are void by now. */
  putBack(tokens: number, wereUsed: boolean, generation: number, now: number): void {
    if (generation !== this.generation) return;
    if (wereUsed) this.used += tokens;
    else if (now < this.expiresAt) this.tokens += tokens;
    else this.stale += tokens;
  }

  /** The requests that still wait; those that come from now on wait for the next call. */
  takeWaiters(): AppWaiter[] {
    const waiters = this.waiters.filter((waiter) => !waiter.done);
    // Requests that could not wait that long were in no call, but the next one reports them.
    for (const { byShare } of this.waiters) this.owed += byShare;
    this.waiters = [];
    return waiters;
  }

  /** The app's part of a call: reports and wishes. From here on the call has them, and not the app. */
  write(
    waiters: readonly AppWaiter[],
    surplus: number,
    want: number,
    reportsUsage: boolean,
    now: number,
  ): AppCall {
    const { used, stale, refunded, late, lateTakenMicros } = this;
    const owed = this.owed + this.owedAway(now);
    this.used = 0;
    this.refunded = 0;
    this.late = 0;
    this.owed = 0;
    this.stale = 0;
    this.wanted = want;
    this.tokens -= surplus;
    this.offline.charge(used, now);
    this.demand.recent(now);
    const consumption = reportsUsage ? this.usage.take(now) : undefined;
    return {
      app: this.index,
      used,
      returned: surplus + stale,
      demand: this.isRetired ? 0 : Math.round(this.demand.mean),
      needs: this.needs(waiters),
      want,
      holding: this.tokens,
      ...(refunded > 0 && { refunded }),
      ...(late > 0 && { late: { tokens: late, takenMicros: lateTakenMicros } }),
      ...(owed > 0 && { owed }),
      ...(consumption !== undefined && { consumption }),
    };
  }

  /** Tokens that are worth having in stock. */
  target(horizonMicros: number, now: number): number {
    if (this.isRetired || this.isThin(horizonMicros, now)) return 0;
    const { demand } = this;
    const { cost, peak } = demand;
    // A few requests in a slot that has just begun are chance; of a new app they are all that is known.
    const rate = peak === 0 || this.isTelling(now) ? demand.risingRate(now) : peak;
    const ahead = (rate * horizonMicros * HEADROOM) / 1_000_000;
    // Whole requests: less than one of them would only be kept from others.
    return Math.ceil(Math.ceil(ahead / cost) * cost);
  }

  /** Tokens used in the time that a call takes; while there is a shortage no more than is granted. */
  use(horizonMicros: number, now: number): number {
    const { demand } = this;
    if (this.lastShortage !== 'none') return Math.max(demand.cost, this.given * HEADROOM);
    const rate = this.isTelling(now) ? demand.risingRate(now) : demand.mean;
    return (rate * horizonMicros * HEADROOM) / 1_000_000;
  }

  private isTelling(now: number): boolean {
    const { demand } = this;
    return demand.recent(now) >= EARNING * demand.cost;
  }

  /**
   * Requests come so rarely that each is better sent to the store by itself. The first ones of an app
   * are taken for the beginning of more.
   */
  isThin(horizonMicros: number, now: number): boolean {
    const { demand } = this;
    const { cost } = demand;
    if (cost === 0) return true;
    if (this.isTelling(now) || demand.mean === 0) return false;
    return demand.mean * horizonMicros < THIN * cost * 1_000_000;
  }

  /** Tokens that others can use better: those beyond the demand of just now and beyond the target. */
  surplus(horizonMicros: number, now: number): number {
    if (this.isRetired) return this.tokens;
    const keep = Math.max(this.demand.recent(now), this.target(horizonMicros, now));
    return Math.max(0, this.tokens - keep);
  }

  /** The waiters as a call lists them: in order, those of the same cost together. */
  private needs(waiters: readonly AppWaiter[]): Need[] {
    const needs: { cost: number; count: number }[] = [];
    for (const { cost } of waiters) {
      const last = needs.at(-1);
      if (last?.cost === cost) last.count++;
      else needs.push({ cost, count: 1 });
    }
    return needs;
  }

  /** The lease is one for all apps of the node, and any reply prolongs it. */
  renew(expiresAt: number, now: number): void {
    if (now >= this.expiresAt) this.drop();
    this.expiresAt = expiresAt;
  }

  /** The store knows nothing of the tokens of this node: its state was lost, or the lease had ended. */
  forget(isNewEpoch: boolean): void {
    this.drop();
    this.stale = 0;
    this.used = 0;
    this.refunded = 0;
    this.late = 0;
    // A store that begins anew begins empty, which makes good for more than that.
    if (isNewEpoch) this.passedAway = 0;
    this.generation++;
    this.isKnown = false;
  }

  /** The store has counted tokens as used that were not, or does not know of some that were. */
  get isOutOfStep(): boolean {
    if (this.refunded + this.late + this.owed + this.passedAway > 0) return true;
    return this.waiters.some(({ byShare }) => byShare > 0);
  }

  /** Applies a reply to a call with these waiters, which the store settled at `takenMicros`. */
  applyReply(
    reply: AppReply,
    waiters: readonly AppWaiter[],
    takenMicros: number,
    now: number,
  ): void {
    this.isUnlisted = false;
    this.tokens += reply.granted;
    this.remaining = reply.remaining;
    this.share = reply.share;
    if (!this.isHeldBack) this.applyShortage(reply, now);
    this.calling = reply.nodes;
    this.repliedMicros = now;
    this.offline.shareWith(this.nodes, now);
    this.lateTakenMicros = takenMicros;
    this.answerWaiters(reply.needs, waiters);
  }

  private applyShortage({ granted, shortage, retryAfterMicros }: AppReply, now: number): void {
    if (this.wanted > 0) {
      const isFirst = this.lastShortage === 'none';
      this.given = isFirst ? granted : (this.given + granted) / 2;
    }
    this.lastShortage = shortage === 'none' ? this.shortage : shortage;
    this.shortage = shortage;
    this.retryAt = now + retryAfterMicros;
  }

  /** The reply has nothing about the app. */
  goUnlisted(waiters: readonly AppWaiter[]): void {
    this.isUnlisted = true;
    for (const waiter of waiters) if (!waiter.done) waiter.fallBack();
  }

  private answerWaiters(granted: readonly number[], waiters: readonly AppWaiter[]): void {
    let group = -1;
    let left = 0;
    let cost = -1;
    for (const waiter of waiters) {
      if (waiter.cost !== cost) {
        cost = waiter.cost;
        left = granted[++group] ?? 0;
      }
      const isGranted = left-- > 0;
      if (!waiter.done) waiter.answer(isGranted);
      else this.answerLate(waiter, isGranted);
    }
  }

  /**
   * A request that waits no longer and passed by share is paid by the grant, and the rest is a debt. If
   * it was denied, the grant goes back, and is not spent here: the store has counted it as used and
   * filled up since, so spending it later would come on top of the bound.
   */
  private answerLate({ cost, byShare }: AppWaiter, isGranted: boolean): void {
    if (byShare > 0) this.owed += byShare - (isGranted ? cost : 0);
    else if (isGranted) this.late += cost;
  }

  /**
   * A grant that was to complete tokens which turned out to be void: it goes back, and the request
   * waits for the next call with its whole cost.
   */
  askAgain(waiter: AppWaiter, cost: number): void {
    this.late += waiter.cost;
    waiter.cost = cost;
    this.waiters.push(waiter);
  }

  /** The lease is over here; in the store it ends a little later. */
  private drop(): void {
    this.stale += this.tokens;
    this.tokens = 0;
  }
}
