import { type Cancel, type Clock } from '../common/clock.js';
import { type QuotaStore } from '../stores/quota-store.js';
import { type AppTokens, type AppWaiter } from './app-tokens.js';
import { type NodeMode } from './mode-watch.js';
import {
  type NodeSurroundings,
  type NodeTuning,
  type QuotaNodeEvents,
  type QuotaNodeSettings,
} from './node-surroundings.js';
import { LeaseCalls } from './lease-calls.js';
import { BY_LEASE, BY_SHARE, BY_STORE, type QuotaOutcome } from './quota-outcome.js';
import { RevisionWatch } from './revision-watch.js';
import { StockPlan } from './stock-plan.js';
import { LONGEST_PROBE_MICROS } from './store-contact.js';
import { LeaseUpkeep } from './lease-upkeep.js';
import { WakeTimer } from './wake-timer.js';

/**
 * A change comes to all processes at the same moment: those that have it leave the machine to the
 * others first. Measured with five processes on two busy cores: a call at once made the last of them
 * 10 to 30 % later, in each of three runs.
 */
const SETTLED_AFTER_MICROS = 20_000;

/**
 * The local tier: decides from leased tokens, in process and at once, and keeps the lease in step
 * with demand by one call at a time for all apps. Reports, what goes back and what is asked for
 * travel together. A scarce answer is no failure: it only sets the pace.
 */
export class QuotaNode {
  /** Decisions, and those of them that had to wait for the store. */
  decisions = 0;
  waited = 0;
  /** The instant of the latest decision, so that who puts it into words need not ask again. */
  decidedAt = 0;
  private readonly revisions = new RevisionWatch();
  private readonly settings: QuotaNodeSettings;
  private readonly plan: StockPlan;
  private readonly timer: WakeTimer;
  private readonly calls: LeaseCalls;
  private readonly upkeep: LeaseUpkeep;

  constructor(
    settings: QuotaNodeSettings,
    private readonly tanks: AppTokens[],
    store: QuotaStore,
    private readonly clock: Clock,
    events: Partial<QuotaNodeEvents>,
    random: () => number = () => clock.random(),
  ) {
    this.settings = { ...settings };
    this.plan = new StockPlan(this.settings, tanks);
    const node: NodeSurroundings = {
      settings: this.settings,
      tanks,
      plan: this.plan,
      clock,
      events,
    };
    this.timer = new WakeTimer(clock, (now) => this.upkeep.wake(now));
    this.calls = new LeaseCalls(node, store, this.timer, this.revisions, random);
    this.upkeep = new LeaseUpkeep(node, this.calls, this.timer, this.revisions);
  }

  tryAcquire(tank: AppTokens, cost: number): QuotaOutcome | Promise<QuotaOutcome> {
    const now = this.clock.now();
    this.decidedAt = now;
    this.decisions++;
    tank.demand.add(cost, now);
    if (!tank.spend(cost, now)) return this.miss(tank, cost, now);
    if (tank.tokens <= tank.refillAt || tank.used >= tank.reportAt) {
      this.upkeep.refill(tank, now);
    } else if (this.timer.at === Infinity) {
      this.timer.arm(now + this.settings.syncMicros);
    }
    return BY_LEASE;
  }

  /**
   * Tokens that were taken and not used after all. What passed by share goes back to the share: the
   * store knows nothing of it.
   */
  giveBack(tank: AppTokens, tokens: number, source: QuotaOutcome['source'] | undefined): void {
    const now = this.clock.now();
    if (source === 'fallback') return tank.putBackToShare(tokens, now);
    const unreported = Math.min(tokens, tank.used);
    tank.used -= unreported;
    tank.putBack(unreported, false, tank.generation, now);
    if (tokens === unreported) return;
    // Nobody knows where it came from; while the store is away, hardly from there.
    if (source === undefined && this.calls.contact.isOffline) {
      return tank.putBackToShare(tokens - unreported, now);
    }
    tank.refunded += tokens - unreported;
    this.timer.arm(now + this.settings.paceMicros);
  }

  /** Goes by another quota, of which the tanks know already; those that are new come last. */
  change(tuning: NodeTuning, added: readonly AppTokens[], revision: number): void {
    // In place: what plans the stock and writes the calls reads the same object.
    Object.assign(this.settings, tuning);
    this.tanks.push(...added);
    const now = this.clock.now();
    this.plan.renew();
    for (const tank of this.tanks) {
      tank.refillAt = this.plan.refillLevel(tank, now);
      tank.reportAt = this.plan.reportLevel(tank, now);
    }
    this.revisions.isUnconfirmed = true;
    this.follow(revision);
  }

  /** The same quota under another revision: the store is told of it with the next call. */
  follow(revision: number): void {
    this.revisions.apply(revision);
    // What apps that are gone have left goes back, and the store's word on the new limits comes.
    if (this.revisions.isUnconfirmed) this.timer.arm(this.clock.now() + SETTLED_AFTER_MICROS);
  }

  /** Something suggests that the store is back: do not wait out the time until the next probe. */
  hint(): void {
    this.calls.hint(this.clock.now());
  }

  modeOf(tank: AppTokens): NodeMode {
    return this.calls.modes.modeOf(tank);
  }

  get remoteCalls(): number {
    return this.calls.made;
  }

  /** Reports what is left to report and gives everything back. */
  leave(): Promise<void> {
    return this.calls.leave();
  }

  private miss(tank: AppTokens, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    const { calls } = this;
    if (calls.contact.isOffline) {
      const made = this.byShare(tank, cost, now);
      if (made.allowed) tank.passAway(cost, now);
      return made;
    }
    const mayCall = now >= calls.nextAt && calls.flight === undefined;
    if (tank.isUnlisted && !mayCall) return this.byShare(tank, cost, now);
    // An app with so little demand that it holds no stock would never ask at all at others' pace.
    const keepsPace = now < tank.retryAt || !this.plan.isThin(tank, now);
    if (tank.lastShortage !== 'none' && !mayCall && keepsPace) {
      const retryAfterMicros = Math.max(tank.retryAt, calls.nextAt, now + 1000) - now;
      return { allowed: false, tier: tank.lastShortage, source: 'local', retryAfterMicros };
    }
    return this.wait(tank, cost, now);
  }

  /** Waits for the store, no longer than the deadline; with a store that answers at once, not. */
  private wait(tank: AppTokens, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    let outcome: QuotaOutcome | undefined;
    let resolve: ((outcome: QuotaOutcome) => void) | undefined;
    const cleanUp: Cancel[] = [];
    let aside = tank.setAside();
    const { generation } = tank;
    const settle = (made: QuotaOutcome): void => {
      waiter.done = true;
      tank.putBack(aside, made === BY_STORE, generation, this.clock.now());
      for (const cancel of cleanUp) cancel();
      outcome = made;
      resolve?.(made);
    };
    const waiter: AppWaiter = {
      cost: cost - aside,
      done: false,
      byShare: 0,
      answer: (granted) => {
        if (granted && aside > 0 && generation !== tank.generation) {
          aside = 0;
          return tank.askAgain(waiter, cost);
        }
        settle(granted ? BY_STORE : this.denied(tank));
      },
      fallBack: () => {
        const made = this.byShare(tank, cost, this.clock.now());
        if (made.allowed) waiter.byShare = cost;
        settle(made);
      },
    };
    tank.waiters.push(waiter);
    // Somebody else's shortage is no reason to keep a request waiting that may well be granted.
    this.calls.call(now, 'urgent');
    this.waited++;
    if (outcome !== undefined) return outcome;
    cleanUp.push(this.clock.after(this.settings.decisionTimeoutMs, () => waiter.fallBack()));
    return new Promise((done) => (resolve = done));
  }

  private denied(tank: AppTokens): QuotaOutcome {
    const tier = tank.shortage === 'cluster' ? 'cluster' : 'app';
    const retryAfterMicros = Math.max(1000, tank.retryAt - this.clock.now());
    return { allowed: false, tier, source: 'store', retryAfterMicros };
  }

  private byShare(tank: AppTokens, cost: number, now: number): QuotaOutcome {
    if (tank.offline.take(cost, now)) return BY_SHARE;
    const retryAfterMicros = Math.min(tank.offline.waitMicros(cost, now), LONGEST_PROBE_MICROS);
    return { allowed: false, tier: 'app', source: 'fallback', retryAfterMicros };
  }
}
