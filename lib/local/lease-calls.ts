import { type QuotaReply } from '../algorithms/quota/quota-protocol.js';
import { type QuotaStore } from '../stores/quota-store.js';
import { CallWriter, type Flight } from './call-writer.js';
import { ModeWatch } from './mode-watch.js';
import { type NodeSurroundings } from './node-surroundings.js';
import { ReplyIntake } from './reply-intake.js';
import { type RevisionWatch } from './revision-watch.js';
import { StoreContact } from './store-contact.js';
import { type WakeTimer } from './wake-timer.js';

const JITTER = 0.2;
/** So that a fleet does not knock all at once. */
const HINT_JITTER_MICROS = 20_000;

/** A node's calls to the store: one at a time, for all apps, and at the pace that replies set. */
export class LeaseCalls {
  /** Calls, ever. */
  made = 0;
  nextAt = 0;
  lastAt = -Infinity;
  readonly contact = new StoreContact();
  readonly modes: ModeWatch;
  readonly writer: CallWriter;
  /** The call on its way. */
  flight: Flight | undefined;
  /** A call whose reply did not come: it goes out again as it was, and counts once. */
  unanswered: Flight | undefined;
  private readonly intake: ReplyIntake;
  private hasLeft = false;
  private whenIdle: (() => void) | undefined;

  constructor(
    private readonly node: NodeSurroundings,
    private readonly store: QuotaStore,
    private readonly timer: WakeTimer,
    revisions: RevisionWatch,
    private readonly random: () => number,
  ) {
    this.writer = new CallWriter(node.settings, node.tanks, node.plan);
    this.intake = new ReplyIntake(node, this.writer, revisions);
    this.modes = new ModeWatch(node, this.contact);
  }

  /** One call at a time; while there is a shortage, one per pace. */
  call(now: number, urgency: 'normal' | 'urgent' = 'normal'): void {
    if (this.flight !== undefined || this.hasLeft) return;
    if (urgency === 'normal' && now < this.nextAt) return this.timer.arm(this.nextAt);
    // A call that goes out again keeps the instant of the first time: its lease may run since then.
    const flight = this.unanswered ?? this.writer.write(now, this.node.settings.paceMicros);
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
    if (!this.contact.isOffline) return;
    this.contact.hint();
    this.nextAt = now + this.random() * HINT_JITTER_MICROS;
    this.timer.arm(this.nextAt);
  }

  /** Reports what is left to report and gives everything back. */
  async leave(): Promise<void> {
    // What is on its way is waited for; nothing new begins, or a timer would never let go.
    this.hasLeft = true;
    this.timer.stop();
    if (this.flight !== undefined) await new Promise<void>((resolve) => (this.whenIdle = resolve));
    if (this.contact.isOffline) return;
    const call = this.writer.writeLast(this.node.clock.now());
    await Promise.resolve(this.store.settle(call)).catch(() => {
      // The lease ends by itself at its time to live.
    });
  }

  private settled(reply: QuotaReply): void {
    const flight = this.flight!;
    const { clock, settings, events, tanks } = this.node;
    const now = clock.now();
    this.flight = undefined;
    if (this.contact.isOffline) events.found?.();
    this.contact.answered();
    const { isScarce, isOvertaken } = this.intake.book(flight, reply, now);
    // A call that came early, because a request waited, is paid for: the next one comes later.
    const owed = Math.min(Math.max(0, this.nextAt - now), settings.paceMicros);
    this.nextAt = isScarce ? now + owed + this.jittered(settings.paceMicros) : 0;
    this.modes.tell();
    events.settled?.(flight.call, reply, tanks);
    if (isOvertaken) events.revision?.(reply.revision);
    this.whenIdle?.();
    this.afterCall(now);
  }

  /** Whoever came while the call was on its way is next; else the timer keeps things moving. */
  private afterCall(now: number): void {
    const { tanks, settings } = this.node;
    if (tanks.some((tank) => tank.waiters.some((waiter) => !waiter.done))) {
      return this.call(now, 'urgent');
    }
    this.timer.arm(now + settings.paceMicros);
  }

  private failed(error: unknown): void {
    const flight = this.flight!;
    const { tanks, clock, settings, events } = this.node;
    const now = clock.now();
    this.flight = undefined;
    this.unanswered = flight;
    const waiting = [...flight.asked.values(), ...tanks.map((tank) => tank.waiters)].flat();
    for (const waiter of waiting) if (!waiter.done) waiter.fallBack();
    for (const tank of tanks) tank.takeWaiters();
    const wasOffline = this.contact.isOffline;
    if (this.contact.failed(error)) {
      if (!wasOffline) events.lost?.(error);
      this.nextAt = now + this.jittered(this.contact.nextProbe());
      this.modes.tell();
    }
    this.whenIdle?.();
    this.timer.arm(Math.max(now + settings.paceMicros, this.nextAt));
  }

  /** So that nodes that fell into step do not stay in it. */
  private jittered(micros: number): number {
    return micros * (1 + this.random() * JITTER);
  }
}
