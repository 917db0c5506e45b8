import {
  type AppCall,
  type QuotaCall,
  type QuotaReply,
} from '../algorithms/quota/quota-protocol.js';
import { type Clock } from '../common/clock.js';
import { StoreTimeoutError } from '../common/errors.js';
import { jitterUp } from '../common/jitter.js';
import { RetryPause } from '../common/retry-pause.js';
import { type QuotaStore } from '../stores/quota-store.js';
import { type AppTokens, type AppWaiter } from './app-tokens.js';
import { type StockPlan, type StockSettings } from './stock-plan.js';

export interface NodeIdentity {
  readonly nodeId: string;
  readonly incarnation: string;
}

export interface QuotaNodeSettings extends NodeIdentity, StockSettings {
  /** While there is a shortage, calls are no closer together than this. */
  readonly paceMicros: number;
  /** Consumption travels by itself only when it is this old, or `batchThreshold` much. */
  readonly syncMicros: number;
  readonly decisionTimeoutMs: number;
}

/** How an app's requests are decided on this node just now. */
export type NodeMode = 'batch' | 'paced' | 'direct' | 'offline';

export interface QuotaNodeEvents {
  /** The store does not answer, and this node does without it; or it answers again. Once per switch. */
  lost(error: unknown): void;
  found(): void;
  mode(app: string, mode: NodeMode): void;
  epoch(epoch: number): void;
  overload(isOverloaded: boolean): void;
  /** During overload the app has another share from now on; 0 when it is over. */
  adjust(app: AppTokens): void;
  /** The store goes by limits of a later revision than this node; once for each revision. */
  revision(revision: number): void;
  /** A call was answered; the call and the reply name apps by their place in `apps`. */
  settled(call: QuotaCall, reply: QuotaReply, apps: readonly AppTokens[]): void;
}

/** A call on its way, and the requests that wait for its reply, by the place of their app. */
export interface CallInFlight {
  readonly call: QuotaCall;
  readonly sentAt: number;
  readonly waiters: ReadonlyMap<number, readonly AppWaiter[]>;
}

const FIRST_PROBE_MICROS = 100_000;
export const LONGEST_PROBE_MICROS = 2_000_000;
/** A hint reaches a whole fleet at the same instant. */
const HINT_JITTER_MICROS = 20_000;
/** Consumption by method is for people: it need not travel with every call. */
const USAGE_EVERY_MICROS = 1_000_000;

/**
 * A node's calls to the store: one at a time, for all apps, and at the pace that replies set. A call is
 * written here, sent, and its reply applied to the apps; lease-upkeep decides when.
 */
export class LeaseCalls {
  /** Calls, ever. */
  made = 0;
  /** The pace allows the next call from this instant on. */
  nextAt = 0;
  lastAt = -Infinity;
  /** The store does not answer, and this node does without it. */
  isOffline = false;
  /** The call on its way. */
  flight: CallInFlight | undefined;
  /** A call whose reply did not come: it goes out again as it was, and counts once. */
  unanswered: CallInFlight | undefined;
  readonly writer: CallWriter;
  readonly revisions = new RevisionWatch();
  private readonly probes = new RetryPause(FIRST_PROBE_MICROS, LONGEST_PROBE_MICROS);
  /** The mode of each app that was emitted last, by its place. */
  private readonly modes: NodeMode[] = [];
  private isOverloaded = false;
  private hasLeft = false;
  private whenIdle: (() => void) | undefined;

  constructor(
    private readonly settings: QuotaNodeSettings,
    private readonly apps: readonly AppTokens[],
    private readonly plan: StockPlan,
    private readonly store: QuotaStore,
    private readonly clock: Clock,
    private readonly events: Partial<QuotaNodeEvents>,
    /** Asks for a look at the node at that instant, at the latest. */
    private readonly wakeAt: (at: number) => void,
    private readonly random: () => number,
  ) {
    this.writer = new CallWriter(settings, apps, plan);
  }

  /** One call at a time; while there is a shortage, one per pace. */
  call(now: number, urgency: 'normal' | 'urgent' = 'normal'): void {
    if (this.flight !== undefined || this.hasLeft) return;
    if (urgency === 'normal' && now < this.nextAt) return this.wakeAt(this.nextAt);
    // A call that goes out again keeps the instant of the first time: its lease may run since then.
    const flight = this.unanswered ?? this.writer.write(now, this.settings.paceMicros);
    this.flight = flight;
    this.unanswered = undefined;
    this.lastAt = now;
    this.made++;
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

  /** The store may be back: the next probe need not wait for its time. */
  hint(now: number): void {
    if (!this.isOffline) return;
    this.probes.shorten();
    this.nextAt = now + this.random() * HINT_JITTER_MICROS;
    this.wakeAt(this.nextAt);
  }

  modeOf(app: AppTokens): NodeMode {
    if (this.isOffline) return 'offline';
    if (app.lastShortage !== 'none') return 'paced';
    return this.plan.target(app, this.clock.now()) === 0 ? 'direct' : 'batch';
  }

  /** Waits for the call on its way, then reports all that was used and gives all tokens back. */
  async leave(): Promise<void> {
    // Nothing new begins, or a timer would never let go.
    this.hasLeft = true;
    if (this.flight !== undefined) await new Promise<void>((resolve) => (this.whenIdle = resolve));
    if (this.isOffline) return;
    const call = this.writer.writeLast(this.clock.now());
    await Promise.resolve(this.store.settle(call)).catch(() => {
      // The lease ends by itself at its time to live.
    });
  }

  private settled(reply: QuotaReply): void {
    const flight = this.flight!;
    const { clock, settings, events, apps } = this;
    const now = clock.now();
    this.flight = undefined;
    if (this.isOffline) events.found?.();
    this.isOffline = false;
    this.probes.succeeded();
    const isOvertaken = this.applyCluster(reply);
    const isScarce = this.applyApps(flight, reply, now);
    // A call that came early, because a request waited, is paid for: the next one comes later.
    const early = Math.min(Math.max(0, this.nextAt - now), settings.paceMicros);
    this.nextAt = isScarce ? now + early + this.jittered(settings.paceMicros) : 0;
    this.emitModes();
    events.settled?.(flight.call, reply, apps);
    if (isOvertaken) events.revision?.(reply.revision);
    this.whenIdle?.();
    this.afterCall(now);
  }

  /** True if the store goes by later limits than this node. Raised figures wait until the store has them. */
  private applyCluster(reply: QuotaReply): boolean {
    const { apps, events } = this;
    const hadEpoch = this.writer.epoch;
    const isNewEpoch = hadEpoch !== 0 && reply.epoch !== hadEpoch;
    if (!this.writer.applyReply(reply)) for (const app of apps) app.forget(isNewEpoch);
    if (isNewEpoch) events.epoch?.(reply.epoch);
    if (reply.overloaded !== this.isOverloaded) {
      this.isOverloaded = reply.overloaded;
      events.overload?.(reply.overloaded);
    }
    const change = this.revisions.compare(reply.revision);
    if (change === 'confirmed') {
      for (const app of apps) if (!app.isRetired) app.confirm(this.clock.now());
    }
    return change === 'overtaken';
  }

  /** True if some app has less than its call wanted. */
  private applyApps({ sentAt, waiters }: CallInFlight, reply: QuotaReply, now: number): boolean {
    const { apps, plan, events } = this;
    for (const app of apps) app.renew(sentAt + reply.leaseTtlMicros, now);
    let isScarce = this.applyOmissions(reply, waiters);
    for (const part of reply.apps) {
      const app = apps[part.app]!;
      const hadShare = app.isOverloaded ? app.share : -1;
      app.applyReply(part, waiters.get(part.app) ?? [], reply.nowMicros, now);
      app.isOverloaded = reply.overloaded;
      if ((app.isOverloaded ? app.share : -1) !== hadShare) events.adjust?.(app);
    }
    plan.capAt(reply.leaseCap);
    for (const part of reply.apps) {
      const app = apps[part.app]!;
      app.refillAt = plan.refillLevel(app, now);
      app.reportAt = plan.reportLevel(app, now);
      app.isStuck = app.tokens <= app.refillAt;
      if (app.lastShortage !== 'none') isScarce = true;
    }
    return isScarce;
  }

  /** True if the store has no limits for some app: then calls for it keep the pace. */
  private applyOmissions(reply: QuotaReply, waiters: CallInFlight['waiters']): boolean {
    if (reply.apps.length === waiters.size) return false;
    for (const [index, ofApp] of waiters) {
      if (reply.apps.some(({ app }) => app === index)) continue;
      this.apps[index]!.goUnlisted(ofApp);
    }
    return true;
  }

  /** Requests that came while the call was on its way are next; else the timer keeps things moving. */
  private afterCall(now: number): void {
    if (this.apps.some((app) => app.waiters.some((waiter) => !waiter.done))) {
      return this.call(now, 'urgent');
    }
    this.wakeAt(now + this.settings.paceMicros);
  }

  private failed(error: unknown): void {
    const flight = this.flight!;
    const { apps, clock, settings, events, probes } = this;
    const now = clock.now();
    this.flight = undefined;
    this.unanswered = flight;
    const waiting = [...flight.waiters.values(), ...apps.map((app) => app.waiters)].flat();
    for (const waiter of waiting) if (!waiter.done) waiter.fallBack();
    for (const app of apps) app.takeWaiters();
    const isCertain = !(error instanceof StoreTimeoutError);
    if (isCertain || probes.failed(now)) {
      if (!this.isOffline) events.lost?.(error);
      this.isOffline = true;
      this.nextAt = now + this.jittered(probes.begin());
      this.emitModes();
    }
    this.whenIdle?.();
    this.wakeAt(Math.max(now + settings.paceMicros, this.nextAt));
  }

  private emitModes(): void {
    for (const app of this.apps) {
      if (app.isRetired) continue;
      const mode = this.modeOf(app);
      const before = this.modes[app.index] ?? 'direct';
      if (mode !== before) this.events.mode?.(app.name, mode);
      this.modes[app.index] = mode;
    }
  }

  private jittered(micros: number): number {
    return jitterUp(micros, this.random());
  }
}

/** Writes and numbers a node's calls, with the state of the store that replies have shown so far. */
export class CallWriter {
  epoch = 0;
  private seq = 0;
  private sequence = 0;
  /** On the store's clock: until when the lease lasts that the last reply has prolonged. */
  private leasedUntil = -Infinity;
  private usageReportedAt = 0;

  constructor(
    private readonly identity: NodeIdentity,
    private readonly apps: readonly AppTokens[],
    private readonly plan: StockPlan,
  ) {}

  /** Reports, tokens that go back, requests that wait, and stock that is wanted. */
  write(now: number, paceMicros: number): CallInFlight {
    const waiting = new Map<number, AppWaiter[]>();
    const calls: AppCall[] = [];
    const reportsUsage = this.reportsUsageAt(now);
    if (reportsUsage) this.usageReportedAt = now;
    this.plan.renew();
    for (const app of this.apps) {
      const waiters = app.takeWaiters();
      const surplus = this.plan.surplus(app, now);
      const mayWant = surplus === 0 && (app.lastShortage === 'none' || now >= app.askAt);
      const want = mayWant ? this.plan.want(app, now) : 0;
      if (mayWant) app.askAt = now + paceMicros;
      // A cluster that is short has tokens again any moment; an app that is at its limit stays there.
      const isHeldBack = !mayWant && surplus === 0 && waiters.length === 0;
      app.isHeldBack = isHeldBack && app.lastShortage === 'app';
      const call = app.write(waiters, surplus, want, reportsUsage, now);
      const isIdle = isEmpty(call);
      // An app without any news is in one call, after which the store stops counting this node.
      if (isIdle && !app.isKnown) continue;
      app.isKnown = !isIdle;
      waiting.set(app.index, waiters);
      calls.push(call);
    }
    return { call: this.number(calls, false), sentAt: now, waiters: waiting };
  }

  /** Whether a call at that instant would report consumption by method. */
  reportsUsageAt(now: number): boolean {
    return now - this.usageReportedAt >= USAGE_EVERY_MICROS;
  }

  /** The last call: all tokens go back. */
  writeLast(now: number): QuotaCall {
    const calls = this.apps.map((app) => {
      return { ...app.write([], app.tokens, 0, true, now), demand: 0 };
    });
    return this.number(calls, true);
  }

  /** False if the tokens that the node held before the reply are void. */
  applyReply({ epoch, sequence, nowMicros, leaseTtlMicros }: QuotaReply): boolean {
    const isSameState = this.epoch === 0 || epoch === this.epoch;
    const hasLasted = nowMicros < this.leasedUntil;
    this.epoch = epoch;
    this.sequence = sequence;
    this.leasedUntil = nowMicros + leaseTtlMicros;
    return isSameState && hasLasted;
  }

  private number(apps: readonly AppCall[], leaving: boolean): QuotaCall {
    const { nodeId: node, incarnation } = this.identity;
    const seq = ++this.seq;
    const { epoch: seenEpoch, sequence: seenSequence } = this;
    return { node, incarnation, seq, seenEpoch, seenSequence, leaving, apps };
  }
}

function isEmpty(call: AppCall): boolean {
  const { used, returned, refunded = 0, late, owed = 0, demand, needs, want, consumption } = call;
  const reports = used + returned + refunded + (late?.tokens ?? 0) + owed;
  return reports + (consumption?.count ?? 0) + demand + needs.length + want === 0;
}

/**
 * The revision of a node beside that of the store. They differ for a while after every change: the node
 * may be the first to have it, or the last.
 */
export class RevisionWatch {
  /** No reply has shown yet that the store goes by this node's limits. */
  isAwaited = false;
  /** The limits have changed, and no reply since was settled under them, under any revision. */
  isUnconfirmed = false;
  private own = 0;
  private latest = 0;

  /** The node goes by limits of this revision from now on. */
  apply(revision: number): void {
    this.own = revision;
    this.latest = Math.max(this.latest, revision);
    this.isAwaited = true;
  }

  /**
   * A reply was settled under this revision: the store has followed the node, or is ahead of it, which
   * is returned once for each revision.
   */
  compare(revision: number): 'confirmed' | 'overtaken' | 'nothing new' {
    const wasAwaited = this.isAwaited;
    if (revision >= this.own) this.isAwaited = false;
    if (revision > this.latest) {
      this.latest = revision;
      return 'overtaken';
    }
    if (!wasAwaited || revision !== this.own) return 'nothing new';
    this.isUnconfirmed = false;
    return 'confirmed';
  }
}
