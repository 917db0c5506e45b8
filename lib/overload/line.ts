import { LogLinear } from '../common/histogram.js';
import { later, type Cancel, type Clock } from '../common/clock.js';
import { TierQueues } from './tier-queues.js';
import { type Turns } from './loop-turns.js';

/** Why the line refuses: too many are ahead to be in time, or the time is up. */
export type Refusal = 'full' | 'late';

/** Work that may have to wait. Exactly one of run and refuse is called, once, unless it is gone. */
export interface LineWaiter {
  /** 0 is the highest. */
  readonly tier: number;
  run(): void;
  refuse(why: Refusal): void;
  /** The caller has gone, and waits for no answer. */
  isGone(): boolean;
}

/** The line's part of the settings; times in microseconds. */
export interface LineSettings {
  /** The longest wait of work while the loop is standing. */
  readonly targetMicros: number;
  /** The longest wait otherwise; a loop that is busy for longer than this counts as standing. */
  readonly intervalMicros: number;
  /** Time in which the line runs work in one turn. */
  readonly sliceMicros: number;
  readonly maxWaiting: number;
  /** Infinity for none. */
  readonly maxInFlight: number;
  /** Number of tiers. */
  readonly tierCount: number;
  /** Everything runs at once, and is counted as it would have fared. */
  readonly isObserved: boolean;
}

/** The work of one tier by what became of it; each is counted once. */
export interface TierCounts {
  /** Ran at once. */
  ran: number;
  /** Ran after it had waited. */
  waited: number;
  /** Refused when it came. */
  full: number;
  /** Refused after it had waited. */
  late: number;
  /** Its caller left while it waited. */
  gone: number;
}

/** Upper bounds of the classes of waits, in milliseconds; the last class has none. */
export const WAIT_BOUNDS_MS: readonly number[] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000];

/** Plain fields that are counted up, and read when they are shown. */
export interface LineStats {
  readonly byTier: readonly TierCounts[];
  /** Work that ran after it had waited, by class of its wait. */
  readonly waits: readonly number[];
  /** The sum of these waits. */
  readonly waitedMicros: number;
}

/** One immediate per piece of work, made in advance: an immediate made by an immediate runs a turn later. */
const MOST_ARMED = 32;
/** One run in so many goes to a lower tier, so that none is locked out. */
const TICKET_EVERY = 64;
/** Up to so many are let in however long one of them takes: the mean of few runs says little. */
const FEW = 4;
const SMOOTHING = 0.05;
/** A wait as long as this is none: the clock has jumped. */
const ABSURD_MICROS = 3_600_000_000;

const noCounts = (): TierCounts => ({ ran: 0, waited: 0, full: 0, late: 0, gone: 0 });

/**
 * The line in front of the framework. Work runs in short slices of the event loop's turns; what does not
 * fit waits here, by tier, for a bounded time, or is refused at once when it would wait too long.
 *
 * Every piece of work ends exactly once: it is run, refused, or gone. Never more than a slice and one run
 * happen in a turn; within a tier the order is kept. Nothing is learned but what one run takes, and nothing
 * is decided on a timer: a loop in trouble would run the timer too late.
 */
export class Line {
  private readonly counts: TierCounts[] = [];
  private readonly waits = [...WAIT_BOUNDS_MS, Infinity].map(() => 0);
  private waitedMicros = 0;
  /** The same waits, in finer classes. */
  readonly waitTimes = new LogLinear();
  private queues: TierQueues<LineWaiter>;
  /** Mean time of one run, as seen from one run to the next. */
  meanRunMicros = 0;
  private runs = 0;
  /** The tier that had the last ticket. */
  private ticket = 0;
  /** Immediates under way. */
  private armed = 0;
  /** When the slice of this turn began; none before its first immediate. */
  private sliceAt: number | undefined;
  /** When the run before began, if the time until the next says what it took. */
  private runAt: number | undefined;
  /** The kernel may hold more connections: one was accepted in this turn or the one before. */
  private isAccepting = false;
  /** A connection was accepted in this turn. */
  private hasAccepted = false;
  /** The instant since which the line has let connections in and run nothing. */
  private acceptsSince: number | undefined;
  /** Length of the last slice in which something ran, with the run that went beyond it. */
  private sliceTook = 0;
  private begun = 0;
  /** When tryBegin() was asked last. */
  private askedAt = 0;
  private inFlightNow = 0;
  private sweep: Cancel | undefined;

  constructor(
    private settings: LineSettings,
    private readonly turns: Turns,
    private readonly clock: Pick<Clock, 'now' | 'every'>,
    /** setImmediate. */
    private readonly soon: (task: () => void) => void,
  ) {
    this.queues = new TierQueues(settings.tierCount);
    this.turns.isObserved = settings.isObserved;
    this.countTiers();
  }

  get size(): number {
    return this.queues.size;
  }

  /** Work between started() and ended(). */
  get inFlight(): number {
    return this.inFlightNow;
  }

  get stats(): LineStats {
    return { byTier: this.counts, waits: this.waits, waitedMicros: this.waitedMicros };
  }

  /** The loop has not rested for `interval`, as of the last time that work came. */
  isStanding(now: number): boolean {
    const busy = now - this.turns.restedAt;
    return busy > this.settings.intervalMicros && busy < ABSURD_MICROS;
  }

  /** True: run it now, without making a LineWaiter, and call ran() after it. Nearly always so, and nothing is allocated. */
  tryBegin(tier: number): boolean {
    const { settings } = this;
    const now = this.clock.now();
    const age = this.turns.age(now);
    this.askedAt = now;
    if (settings.isObserved) {
      this.observe(tier, age, now);
      this.begun = now;
      return true;
    }
    if (this.queues.size > 0 || age >= settings.sliceMicros || this.isAccepting) return false;
    if (this.inFlightNow >= settings.maxInFlight) return false;
    this.counts[tier]!.ran++;
    this.begun = now;
    return true;
  }

  /** Work that tryBegin() let run has run. */
  ran(): void {
    this.learn(this.clock.now() - this.begun);
  }

  /** Work is in flight from here until ended(); neither is called for work whose end is not told. */
  started(): void {
    this.inFlightNow++;
  }

  ended(): void {
    this.inFlightNow--;
    if (this.queues.size === 0) return;
    this.turns.age(this.clock.now());
    this.arm();
  }

  /**
   * A connection was accepted. Node accepts one a turn: where the loop has no rest, callers would wait in the
   * kernel for as many turns as others are before them, and be in no line at all. So the loop turns without
   * running anything until it has accepted all of them, for as long as the last slice took at most.
   */
  connected(): void {
    if (this.settings.isObserved) return;
    const now = this.clock.now();
    this.turns.age(now);
    if (!this.isStanding(now)) return;
    this.hasAccepted = this.isAccepting = true;
    this.arm();
  }

  /** Runs it, lets it wait, or refuses it. */
  enter(one: LineWaiter): void {
    if (!this.tryBegin(one.tier)) return this.append(one);
    one.run();
    this.ran();
  }

  /** The same after tryBegin() has said no. */
  append(one: LineWaiter): void {
    if (this.countIfFull(one.tier)) one.refuse('full');
    else this.wait(one);
  }

  /** True, and it counts as refused: work that does not wait needs no LineWaiter. After tryBegin() has said no. */
  countIfFull(tier: number): boolean {
    const isFull =
      this.queues.size >= this.settings.maxWaiting || this.isTooLong(tier, this.askedAt);
    if (isFull) this.counts[tier]!.full++;
    return isFull;
  }

  /** After countIfFull() has said no. */
  wait(one: LineWaiter): void {
    this.queues.push(one.tier, one, this.askedAt);
    this.arm();
  }

  change(settings: LineSettings): void {
    const before = this.settings;
    this.settings = settings;
    this.turns.isObserved = settings.isObserved;
    if (settings.tierCount !== before.tierCount) this.regroup(settings.tierCount);
    if (settings.isObserved) this.drain();
    else if (this.queues.size > 0) this.arm();
  }

  /** Everything that waits is run. */
  drain(): void {
    this.endSweep();
    for (let tier = this.queues.highest(); tier >= 0; tier = this.queues.highest()) {
      const waited = this.clock.now() - this.queues.firstSince(tier);
      const one = this.queues.shift(tier);
      if (one.isGone()) this.counts[tier]!.gone++;
      else {
        this.countWait(tier, waited);
        one.run();
      }
    }
  }

  /** The wait is predicted, so that a refusal is quick. */
  private isTooLong(tier: number, now: number): boolean {
    const ahead = this.queues.ahead(tier);
    if (ahead < FEW) return false;
    const { targetMicros, intervalMicros } = this.settings;
    return ahead * this.meanRunMicros > (this.isStanding(now) ? targetMicros : intervalMicros);
  }

  private arm(): void {
    if (this.armed > 0 || this.inFlightNow >= this.settings.maxInFlight) {
      if (this.armed === 0) this.beginSweep();
      return;
    }
    this.sliceAt = undefined;
    this.runAt = undefined;
    this.armed = Math.min(this.isAccepting ? this.queues.size || 1 : this.queues.size, MOST_ARMED);
    for (let i = this.armed; i > 0; i--) this.soon(this.pump);
  }

  private readonly pump = (): void => {
    const now = this.clock.now();
    if (this.sliceAt === undefined) this.beginSlice(now);
    if (this.runAt !== undefined) this.learn(now - this.runAt);
    this.runAt = undefined;
    this.armed--;
    const isLast = this.armed === 0;
    try {
      if (this.isFree() && this.acceptsSince === undefined) this.runOne(now);
    } finally {
      // Work may throw when it runs, and the rest still waits.
      if (isLast) this.endTurn();
    }
  };

  private beginSlice(now: number): void {
    this.sliceAt = now;
    this.isAccepting = this.hasAccepted;
    this.hasAccepted = false;
    const since = this.acceptsSince ?? now;
    const longest = Math.max(this.settings.sliceMicros, this.sliceTook);
    const isTime = now - since < longest && now >= since;
    this.acceptsSince = this.isAccepting && isTime ? since : undefined;
  }

  private endTurn(): void {
    if (this.runAt !== undefined) this.learn(this.clock.now() - this.runAt);
    if (this.acceptsSince === undefined) this.sliceTook = this.clock.now() - this.sliceAt!;
    this.turns.ended();
    if (this.queues.size > 0 || this.isAccepting) this.arm();
    else this.endSweep();
  }

  private isFree(): boolean {
    return this.inFlightNow < this.settings.maxInFlight;
  }

  private runOne(begun: number): void {
    const { queues, settings } = this;
    // Refusals are work as well, and there may be a thousand of them after the loop has stood still.
    for (let now = begun; queues.size > 0; now = this.clock.now()) {
      if (now - this.sliceAt! >= settings.sliceMicros) return;
      const tier = this.nextTier();
      if (this.dropFirst(tier, now)) continue;
      if (this.hasTicket()) this.ticket = tier;
      this.runs++;
      this.runAt = now;
      this.countWait(tier, now - queues.firstSince(tier));
      return queues.shift(tier).run();
    }
  }

  /** The highest tier that has work; one time in TICKET_EVERY one of the lower tiers, in turn. */
  private nextTier(): number {
    const { queues } = this;
    const highest = queues.highest();
    if (!this.hasTicket()) return highest;
    for (let i = 1; i <= queues.tiers; i++) {
      const tier = (this.ticket + i) % queues.tiers;
      if (tier > highest && queues.sizeOf(tier) > 0) return tier;
    }
    return highest;
  }

  private hasTicket(): boolean {
    return (this.runs + 1) % TICKET_EVERY === 0;
  }

  /** True if the first of a tier has left, or waited for too long, and so is no longer there. */
  private dropFirst(tier: number, now: number): boolean {
    const { queues } = this;
    const isLate = this.isLate(tier, now - queues.firstSince(tier), now);
    if (!isLate && !queues.first(tier).isGone()) return false;
    const one = queues.shift(tier);
    if (one.isGone()) this.counts[tier]!.gone++;
    else {
      this.counts[tier]!.late++;
      one.refuse('late');
    }
    return true;
  }

  private isLate(tier: number, waited: number, now: number): boolean {
    const { targetMicros, intervalMicros, tierCount } = this.settings;
    if (waited < 0 || waited > ABSURD_MICROS) return false;
    const isHighest = tier === 0 && tierCount > 1;
    return waited > (isHighest || !this.isStanding(now) ? intervalMicros : targetMicros);
  }

  /** One long stall must not count as the usual time of a run. */
  private learn(micros: number): void {
    if (micros < 0 || micros > ABSURD_MICROS) return;
    const took = Math.min(micros, this.settings.intervalMicros);
    const mean = this.meanRunMicros;
    this.meanRunMicros = mean === 0 ? took : mean + SMOOTHING * (took - mean);
  }

  private observe(tier: number, age: number, now: number): void {
    const { sliceMicros, targetMicros, intervalMicros } = this.settings;
    const counts = this.counts[tier]!;
    if (age < sliceMicros) counts.ran++;
    else if (age > (this.isStanding(now) ? targetMicros : intervalMicros)) counts.late++;
    else counts.waited++;
  }

  private countWait(tier: number, micros: number): void {
    const waited = micros > 0 && micros < ABSURD_MICROS ? micros : 0;
    this.counts[tier]!.waited++;
    this.waitedMicros += waited;
    this.waitTimes.record(waited);
    let i = 0;
    while (i < WAIT_BOUNDS_MS.length && waited > WAIT_BOUNDS_MS[i]! * 1000) i++;
    this.waits[i]!++;
  }

  private countTiers(): void {
    while (this.counts.length < this.settings.tierCount) this.counts.push(noCounts());
  }

  /** Work that waits keeps its place as far as there is one. */
  private regroup(tierCount: number): void {
    this.countTiers();
    const before = this.queues;
    this.queues = new TierQueues(tierCount);
    for (let tier = before.highest(); tier >= 0; tier = before.highest()) {
      const since = before.firstSince(tier);
      this.queues.push(Math.min(tier, tierCount - 1), before.shift(tier), since);
    }
  }

  /** At the cap nothing turns the line but the end of a call, which may not come: waits end all the same. */
  private beginSweep(delayMs = this.settings.intervalMicros / 1000): void {
    this.sweep ??= later(this.clock, delayMs, () => {
      this.sweep = undefined;
      if (this.queues.size === 0) return;
      this.beginSweep(this.sweepLate() ? undefined : 1);
    });
  }

  /** False if there was more to refuse than fits into a slice. */
  private sweepLate(): boolean {
    const { queues } = this;
    const begun = this.clock.now();
    this.turns.age(begun);
    for (let tier = 0; tier < queues.tiers; tier++) {
      while (queues.sizeOf(tier) > 0) {
        const now = this.clock.now();
        if (now - begun >= this.settings.sliceMicros) return false;
        if (!this.dropFirst(tier, now)) break;
      }
    }
    return true;
  }

  private endSweep(): void {
    this.sweep?.();
    this.sweep = undefined;
  }
}
