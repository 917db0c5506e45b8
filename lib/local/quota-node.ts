import { type Cancel, type Clock } from '../common/clock.js';
import { type QuotaStore } from '../stores/quota-store.js';
import { type AppTokens, type AppWaiter } from './app-tokens.js';
import {
  LeaseCalls,
  LONGEST_PROBE_MICROS,
  type NodeIdentity,
  type NodeMode,
  type QuotaNodeEvents,
  type QuotaNodeSettings,
} from './lease-calls.js';
import { LeaseUpkeep } from './lease-upkeep.js';
import { StockPlan } from './stock-plan.js';

/** The settings of a node that a change of the quota may change. */
export type NodeTuning = Omit<QuotaNodeSettings, keyof NodeIdentity | 'decisionTimeoutMs'>;

/** The decision on a request. */
export interface QuotaOutcome {
  readonly allowed: boolean;
  /** The level that decided: tokens of this node, or the level that had not enough. */
  readonly tier: 'local' | 'app' | 'cluster';
  readonly source: 'local' | 'store' | 'fallback';
  readonly retryAfterMicros: number;
}

const BY_LEASE: QuotaOutcome = {
  allowed: true,
  tier: 'local',
  source: 'local',
  retryAfterMicros: 0,
};
const BY_STORE: QuotaOutcome = {
  allowed: true,
  tier: 'app',
  source: 'store',
  retryAfterMicros: 0,
};
const BY_SHARE: QuotaOutcome = {
  allowed: true,
  tier: 'local',
  source: 'fallback',
  retryAfterMicros: 0,
};

/**
 * A change comes to all processes at the same moment: those that have it leave the machine to the
 * others first. Measured with five processes on two busy cores: a call at once made the last of them
 * 10 to 30 % later, in each of three runs.
 */
const SETTLED_AFTER_MICROS = 20_000;

/**
 * The local tier: decides from leased tokens, in process and at once, or waits for the store where they
 * do not suffice. The lease is kept in step with demand by one call at a time for all apps (lease-calls:
 * one call; lease-upkeep: when). A scarce answer is no failure: it only sets the pace.
 */
export class QuotaNode {
  /** Decisions, and those of them that had to wait for the store. */
  decisions = 0;
  waited = 0;
  /** The instant of the latest decision, so that its description needs no other look at the clock. */
  decidedAt = 0;
  private readonly settings: QuotaNodeSettings;
  private readonly plan: StockPlan;
  private readonly calls: LeaseCalls;
  private readonly upkeep: LeaseUpkeep;

  constructor(
    settings: QuotaNodeSettings,
    private readonly apps: AppTokens[],
    store: QuotaStore,
    private readonly clock: Clock,
    events: Partial<QuotaNodeEvents>,
    random: () => number = () => clock.random(),
  ) {
    this.settings = { ...settings };
    this.plan = new StockPlan(this.settings, apps);
    this.calls = new LeaseCalls(
      this.settings,
      apps,
      this.plan,
      store,
      clock,
      events,
      (at) => this.upkeep.wakeAt(at),
      random,
    );
    this.upkeep = new LeaseUpkeep(this.settings, apps, this.plan, this.calls, clock);
  }

  tryAcquire(app: AppTokens, cost: number): QuotaOutcome | Promise<QuotaOutcome> {
    const now = this.clock.now();
    this.decidedAt = now;
    this.decisions++;
    app.demand.add(cost, now);
    if (!app.spend(cost, now)) return this.miss(app, cost, now);
    if (app.tokens <= app.refillAt || app.used >= app.reportAt) {
      this.upkeep.refill(app, now);
    } else if (this.upkeep.wakesAt === Infinity) {
      this.upkeep.wakeAt(now + this.settings.syncMicros);
    }
    return BY_LEASE;
  }

  /**
   * Tokens that were taken and not used after all. Those that passed by share go back to the share: the
   * store knows nothing of them.
   */
  giveBack(app: AppTokens, tokens: number, source: QuotaOutcome['source'] | undefined): void {
    const now = this.clock.now();
    if (source === 'fallback') return app.putBackToShare(tokens, now);
    const unreported = Math.min(tokens, app.used);
    app.used -= unreported;
    app.putBack(unreported, false, app.generation, now);
    if (tokens === unreported) return;
    // Tokens of an unknown source hardly came from a store that is away.
    if (source === undefined && this.calls.isOffline) {
      return app.putBackToShare(tokens - unreported, now);
    }
    app.refunded += tokens - unreported;
    this.upkeep.wakeAt(now + this.settings.paceMicros);
  }

  /** Goes by another quota, which the apps have already; new ones come last. */
  change(tuning: NodeTuning, added: readonly AppTokens[], revision: number): void {
    // In place: plan, calls and upkeep read the same object.
    Object.assign(this.settings, tuning);
    this.apps.push(...added);
    const now = this.clock.now();
    this.plan.renew();
    for (const app of this.apps) {
      app.refillAt = this.plan.refillLevel(app, now);
      app.reportAt = this.plan.reportLevel(app, now);
    }
    this.calls.revisions.isUnconfirmed = true;
    this.follow(revision);
  }

  /** The same quota under another revision, which the next call confirms. */
  follow(revision: number): void {
    this.calls.revisions.apply(revision);
    // Tokens of apps that are gone go back, and the reply shows the limits that the store goes by.
    if (this.calls.revisions.isUnconfirmed)
      this.upkeep.wakeAt(this.clock.now() + SETTLED_AFTER_MICROS);
  }

  /** Something suggests that the store is back: do not wait out the time until the next probe. */
  hint(): void {
    this.calls.hint(this.clock.now());
  }

  modeOf(app: AppTokens): NodeMode {
    return this.calls.modeOf(app);
  }

  get remoteCalls(): number {
    return this.calls.made;
  }

  /** Reports all that was used and gives all tokens back. */
  leave(): Promise<void> {
    this.upkeep.stop();
    return this.calls.leave();
  }

  private miss(app: AppTokens, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    const { calls } = this;
    if (calls.isOffline) {
      const made = this.byShare(app, cost, now);
      if (made.allowed) app.passAway(cost, now);
      return made;
    }
    const mayCall = now >= calls.nextAt && calls.flight === undefined;
    if (app.isUnlisted && !mayCall) return this.byShare(app, cost, now);
    // An app with so little demand that it holds no stock would never get a call at the pace of others.
    const keepsPace = now < app.retryAt || !this.plan.isThin(app, now);
    if (app.lastShortage !== 'none' && !mayCall && keepsPace) {
      const retryAfterMicros = Math.max(app.retryAt, calls.nextAt, now + 1000) - now;
      return { allowed: false, tier: app.lastShortage, source: 'local', retryAfterMicros };
    }
    return this.wait(app, cost, now);
  }

  /** Waits for the store, no longer than the deadline; with a store that answers at once, not. */
  private wait(app: AppTokens, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    let outcome: QuotaOutcome | undefined;
    let resolve: ((outcome: QuotaOutcome) => void) | undefined;
    const cleanUp: Cancel[] = [];
    let aside = app.setAside();
    const { generation } = app;
    const settle = (made: QuotaOutcome): void => {
      waiter.done = true;
      app.putBack(aside, made === BY_STORE, generation, this.clock.now());
      for (const cancel of cleanUp) cancel();
      outcome = made;
      resolve?.(made);
    };
    const waiter: AppWaiter = {
      cost: cost - aside,
      done: false,
      byShare: 0,
      answer: (granted) => {
        if (granted && aside > 0 && generation !== app.generation) {
          aside = 0;
          return app.askAgain(waiter, cost);
        }
        settle(granted ? BY_STORE : this.denied(app));
      },
      fallBack: () => {
        const made = this.byShare(app, cost, this.clock.now());
        if (made.allowed) waiter.byShare = cost;
        settle(made);
      },
    };
    app.waiters.push(waiter);
    // The shortage of another app is no reason to keep a request waiting that may well be granted.
    this.calls.call(now, 'urgent');
    this.waited++;
    if (outcome !== undefined) return outcome;
    cleanUp.push(this.clock.after(this.settings.decisionTimeoutMs, () => waiter.fallBack()));
    return new Promise((done) => (resolve = done));
  }

  private denied(app: AppTokens): QuotaOutcome {
    const tier = app.shortage === 'cluster' ? 'cluster' : 'app';
    const retryAfterMicros = Math.max(1000, app.retryAt - this.clock.now());
    return { allowed: false, tier, source: 'store', retryAfterMicros };
  }

  private byShare(app: AppTokens, cost: number, now: number): QuotaOutcome {
    if (app.offline.take(cost, now)) return BY_SHARE;
    const retryAfterMicros = Math.min(app.offline.waitMicros(cost, now), LONGEST_PROBE_MICROS);
    return { allowed: false, tier: 'app', source: 'fallback', retryAfterMicros };
  }
}
