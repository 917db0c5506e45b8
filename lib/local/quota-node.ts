import { type AppCall, type QuotaCall, type QuotaReply } from '../algorithms/quota/index.js';
import { type Cancel, type Clock } from '../common/clock.js';
import { StoreTimeoutError } from '../common/errors.js';
import { type QuotaStore } from '../stores/quota-store.js';
import { type AppTank, type TankWaiter } from './app-tank.js';

/** How an app's requests are decided on this node just now. */
export type NodeMode = 'batch' | 'paced' | 'direct' | 'offline';

export interface QuotaNodeSettings {
  readonly nodeId: string;
  readonly incarnation: string;
  /** For how long a lease should last. */
  readonly horizonMicros: number;
  /** While there is a shortage the store is asked no more often than this. */
  readonly paceMicros: number;
  readonly leaseTtlMicros: number;
  /** Consumption travels by itself only when it is this old… */
  readonly syncMicros: number;
  /** …or this much. */
  readonly batchThreshold: number;
  /** A fixed stock, refilled at or below a part of it; 0 lets the stock follow demand. */
  readonly reserveTarget: number;
  readonly refillThreshold: number;
  readonly decisionTimeoutMs: number;
}

export interface QuotaNodeEvents {
  mode(app: string, mode: NodeMode): void;
  epoch(epoch: number): void;
  overload(isOverloaded: boolean): void;
}

/** What came of a request. */
export interface QuotaOutcome {
  readonly allowed: boolean;
  /** Who decided: tokens of this node, or the level that had not enough. */
  readonly tier: 'local' | 'app' | 'cluster';
  readonly source: 'local' | 'store' | 'fallback';
  readonly retryAfterMicros: number;
}

interface Flight {
  readonly call: QuotaCall;
  readonly sentAt: number;
  readonly asked: ReadonlyMap<number, TankWaiter[]>;
}

const BY_LEASE: QuotaOutcome = {
  allowed: true,
  tier: 'local',
  source: 'local',
  retryAfterMicros: 0,
};
const BY_STORE: QuotaOutcome = { allowed: true, tier: 'app', source: 'store', retryAfterMicros: 0 };
const BY_SHARE: QuotaOutcome = {
  allowed: true,
  tier: 'local',
  source: 'fallback',
  retryAfterMicros: 0,
};

const JITTER = 0.2;
/** A lease of 1.5 horizons that is refilled at a third lasts one horizon between calls. */
const REFILL_PART = 1 / 3;
const FAILURES_TO_OFFLINE = 3;
const FIRST_PROBE_MICROS = 100_000;
const LONGEST_PROBE_MICROS = 2_000_000;

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
  private seq = 0;
  private epoch = 0;
  private sequence = 0;
  private overloaded = false;
  private leaseCap = Infinity;
  private flight: Flight | undefined;
  /** A call whose reply did not come: it goes out again as it was, and counts once. */
  private unanswered: Flight | undefined;
  private nextCallAt = 0;
  private lastCallAt = -Infinity;
  private failures = 0;
  private probeMicros = FIRST_PROBE_MICROS;
  private isOffline = false;
  private cancelTimer: Cancel | undefined;
  private timerAt = Infinity;
  private readonly refillAt: number[];
  private readonly modes: NodeMode[];
  private whenIdle: (() => void) | undefined;

  constructor(
    private readonly settings: QuotaNodeSettings,
    private readonly tanks: readonly AppTank[],
    private readonly store: QuotaStore,
    private readonly clock: Clock,
    private readonly events: QuotaNodeEvents,
    private readonly random: () => number = Math.random,
  ) {
    this.refillAt = tanks.map(() => 0);
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
    if (tank.tokens <= this.refillAt[tank.index]! || tank.used >= this.settings.batchThreshold) {
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
    tank.putBack(unreported, false, now);
    // What has been reported as used is paid for, and good for another request.
    if (now < tank.expiresAt) tank.prepaid += tokens - unreported;
  }

  modeOf(tank: AppTank): NodeMode {
    if (this.isOffline) return 'offline';
    if (tank.lastShortage !== 'none') return 'paced';
    return this.targetOf(tank, this.clock.now()) === 0 ? 'direct' : 'batch';
  }

  /** Reports what is left to report and gives everything back. */
  async leave(): Promise<void> {
    this.cancelTimer?.();
    if (this.flight !== undefined) await new Promise<void>((resolve) => (this.whenIdle = resolve));
    if (this.isOffline) return;
    const apps = this.tanks.map((tank) => {
      const app = this.appCall(tank, [], this.clock.now(), tank.tokens, 0);
      return { ...app, demand: 0 };
    });
    const call = { ...this.newCall(apps), leaving: true };
    await Promise.resolve(this.store.settle(call)).catch(() => {
      // The lease ends by itself at its time to live.
    });
  }

  private miss(tank: AppTank, cost: number, now: number): QuotaOutcome | Promise<QuotaOutcome> {
    if (this.isOffline) return this.byShare(tank, cost, now);
    const mayCall = now >= this.nextCallAt && this.flight === undefined;
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
    const settle = (made: QuotaOutcome): void => {
      waiter.done = true;
      tank.putBack(aside, made === BY_STORE, this.clock.now());
      for (const cancel of cleanUp) cancel();
      outcome = made;
      resolve?.(made);
    };
    const waiter: TankWaiter = {
      cost: cost - aside,
      done: false,
      answer: (granted) => settle(granted ? BY_STORE : this.denied(tank)),
    };
    tank.waiters.push(waiter);
    // Somebody else's shortage is no reason to keep a request waiting that may well be granted.
    this.call(now, 'urgent');
    this.waited++;
    if (outcome !== undefined) return outcome;
    const onDeadline = (): void => settle(this.byShare(tank, cost, this.clock.now()));
    cleanUp.push(this.clock.after(this.settings.decisionTimeoutMs, onDeadline));
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
    const { batchThreshold, horizonMicros, syncMicros } = this.settings;
    if (tank.used >= batchThreshold && tank.used >= this.twoHorizons(tank, now)) {
      return this.call(now);
    }
    if (tank.tokens > this.refillAt[tank.index]! || this.wantOf(tank, now) === 0) {
      return this.arm(now + syncMicros);
    }
    // What did not come with the last call will hardly come with the next one right after it.
    const soonest = tank.isStuck ? this.lastCallAt + horizonMicros / 2 : 0;
    if (now >= soonest) this.call(now);
    else this.arm(soonest);
  }

  private twoHorizons(tank: AppTank, now: number): number {
    return (2 * tank.demand.attack(now) * this.settings.horizonMicros) / 1_000_000;
  }

  private targetOf(tank: AppTank, now: number): number {
    const { reserveTarget, horizonMicros } = this.settings;
    return reserveTarget > 0 ? reserveTarget : tank.target(horizonMicros, now);
  }

  private wantOf(tank: AppTank, now: number): number {
    return Math.max(0, Math.min(this.targetOf(tank, now), this.leaseCap) - tank.tokens);
  }

  /** One call at a time; while there is a shortage, one per pace. */
  private call(now: number, urgency: 'normal' | 'urgent' = 'normal'): void {
    if (this.flight !== undefined) return;
    if (urgency === 'normal' && now < this.nextCallAt) return this.arm(this.nextCallAt);
    // A call that goes out again keeps the instant of the first time: its lease may run since then.
    const flight = this.unanswered ?? this.newFlight(now);
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

  private newFlight(now: number): Flight {
    const asked = new Map<number, TankWaiter[]>();
    const apps: AppCall[] = [];
    for (const tank of this.tanks) {
      const waiters = tank.waiters.filter((waiter) => !waiter.done);
      tank.waiters = [];
      const surplus = this.settings.reserveTarget > 0 ? 0 : this.surplusOf(tank, now);
      const isPaced = tank.lastShortage !== 'none' && now < this.nextCallAt;
      const want = surplus > 0 || isPaced ? 0 : this.wantOf(tank, now);
      const app = this.appCall(tank, waiters, now, surplus, want);
      const isIdle = app.used + app.returned + app.want + app.demand + app.needs.length === 0;
      if (isIdle) continue;
      asked.set(tank.index, waiters);
      apps.push(app);
    }
    return { call: this.newCall(apps), sentAt: now, asked };
  }

  private surplusOf(tank: AppTank, now: number): number {
    return tank.surplus(this.settings.horizonMicros, now);
  }

  private appCall(
    tank: AppTank,
    waiters: readonly TankWaiter[],
    now: number,
    returned: number,
    want: number,
  ): AppCall {
    const { used } = tank;
    tank.used = 0;
    tank.tokens -= returned;
    tank.offline.charge(used, now);
    tank.demand.recent(now);
    const demand = Math.round(tank.demand.mean);
    return { app: tank.index, used, returned, demand, needs: tank.needs(waiters), want };
  }

  private newCall(apps: readonly AppCall[]): QuotaCall {
    const { nodeId: node, incarnation } = this.settings;
    const seq = ++this.seq;
    const { epoch: seenEpoch, sequence: seenSequence } = this;
    return { node, incarnation, seq, seenEpoch, seenSequence, leaving: false, apps };
  }

  private settled(reply: QuotaReply): void {
    const { sentAt, asked } = this.flight!;
    const now = this.clock.now();
    this.flight = undefined;
    this.failures = 0;
    this.probeMicros = FIRST_PROBE_MICROS;
    this.isOffline = false;
    this.sequence = reply.sequence;
    this.leaseCap = reply.leaseCap;
    if (this.epoch !== 0 && reply.epoch !== this.epoch) this.events.epoch(reply.epoch);
    this.epoch = reply.epoch;
    if (reply.overloaded !== this.overloaded) {
      this.events.overload((this.overloaded = reply.overloaded));
    }
    const expiresAt = sentAt + this.settings.leaseTtlMicros;
    let isScarce = false;
    for (const app of reply.apps) {
      const tank = this.tanks[app.app]!;
      tank.settle(app, asked.get(app.app) ?? [], expiresAt, now);
      this.refillAt[app.app] = this.refillLevel(tank, now);
      tank.isStuck = tank.tokens <= this.refillAt[app.app]!;
      if (tank.lastShortage !== 'none') isScarce = true;
    }
    const { paceMicros } = this.settings;
    this.nextCallAt = isScarce ? now + paceMicros * (1 + this.random() * JITTER) : 0;
    this.tellModes();
    this.whenIdle?.();
    this.afterCall(now);
  }

  /** Whoever came while the call was on its way is next; else the timer keeps things moving. */
  private afterCall(now: number): void {
    if (this.tanks.some((tank) => tank.waiters.some((waiter) => !waiter.done))) {
      return this.call(now, 'urgent');
    }
    this.arm(now + this.settings.paceMicros);
  }

  private refillLevel(tank: AppTank, now: number): number {
    const { reserveTarget, refillThreshold } = this.settings;
    if (reserveTarget > 0) return Math.floor(reserveTarget * refillThreshold);
    const level = Math.floor(Math.min(this.targetOf(tank, now), this.leaseCap) * REFILL_PART);
    // While there is a shortage the pace decides, and asking at every token would be in vain.
    return tank.lastShortage === 'none' ? level : -1;
  }

  private failed(error: unknown): void {
    const flight = this.flight!;
    const now = this.clock.now();
    this.flight = undefined;
    this.unanswered = flight;
    for (const [index, waiters] of flight.asked) {
      for (const waiter of waiters) this.fallBack(this.tanks[index]!, waiter, now);
    }
    for (const tank of this.tanks) {
      for (const waiter of tank.waiters) this.fallBack(tank, waiter, now);
      tank.waiters = [];
    }
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

  private fallBack(tank: AppTank, waiter: TankWaiter, now: number): void {
    if (!waiter.done) waiter.answer(tank.offline.take(waiter.cost, now));
  }

  private tellModes(): void {
    for (const tank of this.tanks) {
      const mode = this.modeOf(tank);
      if (mode !== this.modes[tank.index]) this.events.mode(tank.app, mode);
      this.modes[tank.index] = mode;
    }
  }

  private arm(at: number): void {
    if (at >= this.timerAt) return;
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
    let isDue = this.unanswered !== undefined;
    for (const tank of this.tanks) {
      if (now >= tank.expiresAt) tank.spend(Infinity, now);
      if (tank.tokens > 0 || tank.used > 0) holds = true;
      if (tank.used > 0 && now - this.lastCallAt >= syncMicros) isDue = true;
      if (tank.lastShortage !== 'none' && tank.demand.recent(now) > 0) isDue = true;
      if (this.settings.reserveTarget === 0 && this.surplusOf(tank, now) > 0) isDue = true;
      const isLow = holds && tank.tokens <= this.refillAt[tank.index]!;
      if (isLow && this.wantOf(tank, now) > 0) isDue = true;
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
