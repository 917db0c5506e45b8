import { type QuotaCall, type QuotaReply } from '../algorithms/quota/index.js';
import { type Cancel, type Clock } from '../common/clock.js';
import { StoreTimeoutError } from '../common/errors.js';
import { type QuotaStore } from '../stores/quota-store.js';
import { type AppTank, type TankWaiter } from './app-tank.js';
import { BY_LEASE, BY_SHARE, BY_STORE, type QuotaOutcome } from './quota-outcome.js';
import { RevisionWatch } from './revision-watch.js';
import { CallWriter, type Flight, type NodeIdentity } from './call-writer.js';
import { StockPlan, type StockSettings } from './stock-plan.js';

/** How an app's requests are decided on this node just now. */
export type NodeMode = 'batch' | 'paced' | 'direct' | 'offline';

export interface QuotaNodeSettings extends NodeIdentity, StockSettings {
  /** While there is a shortage the store is asked no more often than this. */
  readonly paceMicros: number;
  /** Consumption travels by itself only when it is this old, or `batchThreshold` much. */
  readonly syncMicros: number;
  readonly decisionTimeoutMs: number;
}

/** What a change of the quota may change of them. */
export type NodeTuning = Omit<QuotaNodeSettings, keyof NodeIdentity | 'decisionTimeoutMs'>;

export interface QuotaNodeEvents {
  mode(app: string, mode: NodeMode): void;
  epoch(epoch: number): void;
  overload(isOverloaded: boolean): void;
  /** During overload the app has another share from now on; 0 when it is over. */
  adjust(tank: AppTank): void;
  /** The store goes by limits of a later revision than this node; told once for each. */
  revision(revision: number): void;
  /** A call was answered; apps are called by their place among the tanks. */
  settled(call: QuotaCall, reply: QuotaReply, tanks: readonly AppTank[]): void;
}

const JITTER = 0.2;
const FAILURES_TO_OFFLINE = 3;
const FIRST_PROBE_MICROS = 100_000;
const LONGEST_PROBE_MICROS = 2_000_000;
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
  remoteCalls = 0;
  private readonly revisions = new RevisionWatch();
  /** The quota has changed, and the store was not heard to go by it since, under any revision. */
  private isUnconfirmed = false;
  private readonly settings: QuotaNodeSettings;
  private readonly plan: StockPlan;
  private readonly writer: CallWriter;
  private overloaded = false;
  private flight: Flight | undefined;
  /** A call whose reply did not come: it goes out again as it was, and counts once. */
  private unanswered: Flight | undefined;
  private nextCallAt = 0;
  private lastCallAt = -Infinity;
  private failures = 0;
  private probeMicros = FIRST_PROBE_MICROS;
  private isOffline = false;
  private hasLeft = false;
  private cancelTimer: Cancel | undefined;
  private timerAt = Infinity;
  private readonly modes: NodeMode[];
  private whenIdle: (() => void) | undefined;

  constructor(
    settings: QuotaNodeSettings,
    private readonly tanks: AppTank[],
    private readonly store: QuotaStore,
    private readonly clock: Clock,
    private readonly events: Partial<QuotaNodeEvents>,
    private readonly random: () => number = Math.random,
  ) {
    this.settings = { ...settings };
    this.plan = new StockPlan(this.settings);
    this.writer = new CallWriter(this.settings, tanks, this.plan);
    this.modes = tanks.map(() => 'direct');
  }

  /** The instant of the latest decision, so that who puts it into words need not ask again. */
  decidedAt = 0;

  tryAcquire(tank: AppTank, cost: number): QuotaOutcome | Promise<QuotaOutcome> {
    const now = this.clock.now();
    this.decidedAt = now;
    this.decisions++;
    tank.demand.add(cost, now);
    if (!tank.spend(cost, now)) return this.miss(tank, cost, now);
    if (tank.tokens <= tank.refillAt || tank.used >= tank.reportAt) {
      this.refill(tank, now);
    } else if (this.timerAt === Infinity) {
      this.arm(now + this.settings.syncMicros);
    }
    return BY_LEASE;
  }

  /** Tokens that were taken and not used after all. */
  giveBack(tank: AppTank, tokens: number): void {
    const now = this.clock.now();
    const unreported = Math.min(tokens, tank.used);
    tank.used -= unreported;
    tank.putBack(unreported, false, tank.generation, now);
    if (tokens === unreported) return;
    tank.refunded += tokens - unreported;
    this.arm(now + this.settings.paceMicros);
  }

  /** Goes by another quota, of which the tanks know already; those that are new come last. */
  change(tuning: NodeTuning, added: readonly AppTank[], revision: number): void {
    // In place: what plans the stock and writes the calls reads the same object.
    Object.assign(this.settings, tuning);
    for (const tank of added) {
      this.tanks.push(tank);
      this.modes.push('direct');
    }
    const now = this.clock.now();
    for (const tank of this.tanks) {
      tank.refillAt = this.plan.refillLevel(tank, now);
      tank.reportAt = this.plan.reportLevel(tank, now);
    }
    this.isUnconfirmed = true;
    this.follow(revision);
  }

  /** The same quota under another revision: the store is told of it with the next call. */
  follow(revision: number): void {
    this.revisions.apply(revision);
    // What apps that are gone have left goes back, and the store's word on the new limits comes.
    if (this.isUnconfirmed) this.arm(this.clock.now() + SETTLED_AFTER_MICROS);
  }

  modeOf(tank: AppTank): NodeMode {
    if (this.isOffline) return 'offline';
    if (tank.lastShortage !== 'none') return 'paced';
    return this.plan.target(tank, this.clock.now()) === 0 ? 'direct' : 'batch';
  }

  /** Reports what is left to report and gives everything back. */
  async leave(): Promise<void> {
    // What is on its way is waited for; nothing new begins, or a timer would never let go.
    this.hasLeft = true;
    this.cancelTimer?.();
    if (this.flight !== undefined) await new Promise<void>((resolve) => (this.whenIdle = resolve));
    if (this.isOffline) return;
    const call = this.writer.writeLast(this.clock.now());
    await Promise.resolve(this.store.settle(call)).catch(() => {
      // The lease ends by itself at its time to live.
    });
  }

  private miss(tank: AppTank, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    if (this.isOffline) return this.byShare(tank, cost, now);
    const mayCall = now >= this.nextCallAt && this.flight === undefined;
    if (tank.isUnlisted && !mayCall) return this.byShare(tank, cost, now);
    if (tank.lastShortage !== 'none' && !mayCall) {
      const retryAfterMicros = Math.max(tank.retryAt, this.nextCallAt, now + 1000) - now;
      return { allowed: false, tier: tank.lastShortage, source: 'local', retryAfterMicros };
    }
    return this.wait(tank, cost, now);
  }

  /** Waits for the store, no longer than the deadline; with a store that answers at once, not. */
  private wait(tank: AppTank, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    let outcome: QuotaOutcome | undefined;
    let resolve: ((outcome: QuotaOutcome) => void) | undefined;
    const cleanUp: Cancel[] = [];
    const aside = tank.setAside();
    const { generation } = tank;
    const settle = (made: QuotaOutcome): void => {
      waiter.done = true;
      tank.putBack(aside, made === BY_STORE, generation, this.clock.now());
      for (const cancel of cleanUp) cancel();
      outcome = made;
      resolve?.(made);
    };
    const waiter: TankWaiter = {
      cost: cost - aside,
      done: false,
      answer: (granted) => settle(granted ? BY_STORE : this.denied(tank)),
      fallBack: () => settle(this.byShare(tank, cost, this.clock.now())),
    };
    tank.waiters.push(waiter);
    // Somebody else's shortage is no reason to keep a request waiting that may well be granted.
    this.call(now, 'urgent');
    this.waited++;
    if (outcome !== undefined) return outcome;
    cleanUp.push(this.clock.after(this.settings.decisionTimeoutMs, () => waiter.fallBack()));
    return new Promise((done) => (resolve = done));
  }

  private denied(tank: AppTank): QuotaOutcome {
    const tier = tank.shortage === 'cluster' ? 'cluster' : 'app';
    const retryAfterMicros = Math.max(1000, tank.retryAt - this.clock.now());
    return { allowed: false, tier, source: 'store', retryAfterMicros };
  }

  private byShare(tank: AppTank, cost: number, now: number): QuotaOutcome {
    if (tank.offline.take(cost, now)) return BY_SHARE;
    const retryAfterMicros = Math.min(tank.offline.waitMicros(cost, now), LONGEST_PROBE_MICROS);
    return { allowed: false, tier: 'app', source: 'fallback', retryAfterMicros };
  }

  private refill(tank: AppTank, now: number): void {
    if (this.isOffline || this.flight !== undefined) return;
    const { horizonMicros, syncMicros } = this.settings;
    if (tank.used >= tank.reportAt) return this.call(now);
    if (tank.tokens > tank.refillAt || this.plan.want(tank, now) === 0) {
      return this.arm(now + syncMicros);
    }
    // What did not come with the last call will hardly come with the next one right after it.
    const soonest = tank.isStuck ? this.lastCallAt + horizonMicros / 2 : 0;
    if (now >= soonest) this.call(now);
    else this.arm(soonest);
  }

  /** One call at a time; while there is a shortage, one per pace. */
  private call(now: number, urgency: 'normal' | 'urgent' = 'normal'): void {
    if (this.flight !== undefined || this.hasLeft) return;
    if (urgency === 'normal' && now < this.nextCallAt) return this.arm(this.nextCallAt);
    // A call that goes out again keeps the instant of the first time: its lease may run since then.
    const flight = this.unanswered ?? this.writer.write(now, now < this.nextCallAt);
    this.flight = flight;
    this.unanswered = undefined;
    this.lastCallAt = now;
    this.remoteCalls++;
    let answer: QuotaReply | Promise<QuotaReply>;
    try {
      answer = this.store.settle(flight.call);
    } catch (error) {
      return this.failed(error);
    }
    if (answer instanceof Promise) {
      answer.then(
        (reply) => this.settled(reply),
        (error: unknown) => this.failed(error),
      );
    } else {
      this.settled(answer);
    }
  }

  private settled(reply: QuotaReply): void {
    const { call, sentAt, asked } = this.flight!;
    const now = this.clock.now();
    this.flight = undefined;
    this.failures = 0;
    this.probeMicros = FIRST_PROBE_MICROS;
    this.isOffline = false;
    this.plan.leaseCap = reply.leaseCap;
    this.takeIn(reply);
    const isOvertaken = this.isOvertakenBy(reply.revision);
    for (const tank of this.tanks) tank.renew(sentAt + reply.leaseTtlMicros, now);
    let isScarce = this.leaveOut(reply, asked);
    for (const app of reply.apps) {
      const tank = this.tanks[app.app]!;
      const hadShare = tank.isOverloaded ? tank.share : -1;
      tank.settle(app, asked.get(app.app) ?? [], now);
      tank.isOverloaded = reply.overloaded;
      if ((tank.isOverloaded ? tank.share : -1) !== hadShare) this.events.adjust?.(tank);
      tank.refillAt = this.plan.refillLevel(tank, now);
      tank.reportAt = this.plan.reportLevel(tank, now);
      tank.isStuck = tank.tokens <= tank.refillAt;
      if (tank.lastShortage !== 'none') isScarce = true;
    }
    const { paceMicros } = this.settings;
    this.nextCallAt = isScarce ? now + paceMicros * (1 + this.random() * JITTER) : 0;
    this.tellModes();
    this.events.settled?.(call, reply, this.tanks);
    if (isOvertaken) this.events.revision?.(reply.revision);
    this.whenIdle?.();
    this.afterCall(now);
  }

  /** What a reply says about the cluster, before what it says about the apps. */
  private takeIn(reply: QuotaReply): void {
    const hadEpoch = this.writer.epoch;
    if (!this.writer.hear(reply)) for (const tank of this.tanks) tank.forget();
    if (hadEpoch !== 0 && reply.epoch !== hadEpoch) this.events.epoch?.(reply.epoch);
    if (reply.overloaded === this.overloaded) return;
    this.overloaded = reply.overloaded;
    this.events.overload?.(reply.overloaded);
  }

  /** True if there are apps that the store has no limits for; it is not asked for them all the time. */
  private leaveOut(reply: QuotaReply, asked: Flight['asked']): boolean {
    if (reply.apps.length === asked.size) return false;
    for (const [index, waiters] of asked) {
      if (reply.apps.some(({ app }) => app === index)) continue;
      this.tanks[index]!.goUnlisted(waiters);
    }
    return true;
  }

  /** Raised figures wait until the store has them. True if it has later ones than this node. */
  private isOvertakenBy(revision: number): boolean {
    const news = this.revisions.hear(revision);
    if (news === 'confirmed') {
      this.isUnconfirmed = false;
      for (const tank of this.tanks) if (!tank.isRetired) tank.confirm(this.clock.now());
    }
    return news === 'overtaken';
  }

  /** Whoever came while the call was on its way is next; else the timer keeps things moving. */
  private afterCall(now: number): void {
    if (this.tanks.some((tank) => tank.waiters.some((waiter) => !waiter.done))) {
      return this.call(now, 'urgent');
    }
    this.arm(now + this.settings.paceMicros);
  }

  private failed(error: unknown): void {
    const flight = this.flight!;
    const now = this.clock.now();
    this.flight = undefined;
    this.unanswered = flight;
    const waiting = [...flight.asked.values(), ...this.tanks.map((tank) => tank.waiters)].flat();
    for (const tank of this.tanks) tank.waiters = [];
    for (const waiter of waiting) if (!waiter.done) waiter.fallBack();
    const isCertain = !(error instanceof StoreTimeoutError);
    if (isCertain || ++this.failures >= FAILURES_TO_OFFLINE) {
      this.isOffline = true;
      this.nextCallAt = now + this.probeMicros * (1 + this.random() * JITTER);
      this.probeMicros = Math.min(this.probeMicros * 2, LONGEST_PROBE_MICROS);
      this.tellModes();
    }
    this.whenIdle?.();
    this.arm(Math.max(now + this.settings.paceMicros, this.nextCallAt));
  }

  private tellModes(): void {
    for (const tank of this.tanks) {
      if (tank.isRetired) continue;
      const mode = this.modeOf(tank);
      if (mode !== this.modes[tank.index]) this.events.mode?.(tank.app, mode);
      this.modes[tank.index] = mode;
    }
  }

  private arm(at: number): void {
    if (at >= this.timerAt || this.hasLeft) return;
    this.cancelTimer?.();
    this.timerAt = at;
    const delayMs = Math.max(1, (at - this.clock.now()) / 1000);
    this.cancelTimer = this.clock.after(delayMs, () => {
      this.timerAt = Infinity;
      this.wake(this.clock.now());
    });
  }

  /** Does what is due: a probe, a report, a refill, or giving back; and rests when nothing is. */
  private wake(now: number): void {
    if (this.flight !== undefined) return;
    if (this.isOffline) return this.call(now);
    const { syncMicros } = this.settings;
    let holds = false;
    let isDue = this.unanswered !== undefined || this.revisions.isAwaited;
    for (const tank of this.tanks) {
      if (now >= tank.expiresAt) tank.spend(Infinity, now);
      if (tank.tokens + tank.used + tank.usage.count + tank.refunded > 0) holds = true;
      if (tank.refunded > 0) isDue = true;
      if (tank.usage.count > 0 && this.writer.tellsUsageAt(now)) isDue = true;
      if (tank.used > 0 && now - this.lastCallAt >= syncMicros) isDue = true;
      if (tank.lastShortage !== 'none' && tank.demand.recent(now) > 0) isDue = true;
      if (this.plan.surplus(tank, now) > 0) isDue = true;
      const isLow = holds && tank.tokens <= tank.refillAt;
      if (isLow && this.plan.want(tank, now) > 0) isDue = true;
    }
    if (isDue) this.call(now);
    else if (holds) this.arm(this.nextLook(now));
  }

  /** In one pace, or when a report is due if that is earlier. */
  private nextLook(now: number): number {
    const { syncMicros, paceMicros } = this.settings;
    const reportAt = this.lastCallAt + syncMicros;
    return reportAt > now ? Math.min(now + paceMicros, reportAt) : now + paceMicros;
  }
}
