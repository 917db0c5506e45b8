import { type Cancel, type Clock } from '../common/clock.js';

const TICK_MICROS = 2000;
const SLOTS = 1024;
/** The timer is set so many ticks ahead at most, or it would keep a finished process waiting. */
const FARTHEST_TICKS = 50;

/** Something that wants to be called at an instant, once. Set again, the earlier one is forgotten. */
export abstract class Alarm {
  /** @internal when it is due, in ticks; 0 if it is not set. */
  tick = 0;
  /** @internal */
  before: Alarm | undefined = undefined;
  /** @internal */
  after: Alarm | undefined = undefined;

  abstract ring(): void;
}

/**
 * One timer for all calls: a timer or an `AbortSignal.timeout` of their own would cost more than
 * everything else here together.
 *
 * Alarms lie in rings of slots by the tick at which they are due, so that setting and clearing one
 * is a matter of a few pointers. They are never early, and late by two milliseconds at most if the
 * process is not busy.
 */
export class TimerWheel {
  private readonly slots: (Alarm | undefined)[] = new Array<undefined>(SLOTS).fill(undefined);
  private readonly rung: Alarm[] = [];
  private count = 0;
  /** Up to here all slots were looked at. */
  private doneTick = 0;
  private armedTick = Infinity;
  private cancelTimer: Cancel | undefined;

  constructor(private readonly clock: Clock) {}

  /** How many alarms are set. */
  get size(): number {
    return this.count;
  }

  set(alarm: Alarm, dueMicros: number, now: number): void {
    if (alarm.tick !== 0) this.clear(alarm);
    const nowTick = Math.floor(now / TICK_MICROS);
    if (this.count === 0) this.doneTick = nowTick;
    const tick = Math.max(Math.ceil(dueMicros / TICK_MICROS), this.doneTick + 1);
    alarm.tick = tick;
    const first = this.slots[tick % SLOTS];
    alarm.after = first;
    if (first !== undefined) first.before = alarm;
    this.slots[tick % SLOTS] = alarm;
    this.count++;
    if (tick < this.armedTick) this.arm(Math.min(tick, nowTick + FARTHEST_TICKS), now);
  }

  clear(alarm: Alarm): void {
    const { tick, before, after } = alarm;
    if (tick === 0) return;
    if (before === undefined) this.slots[tick % SLOTS] = after;
    else before.after = after;
    if (after !== undefined) after.before = before;
    alarm.tick = 0;
    alarm.before = alarm.after = undefined;
    this.count--;
  }

  private arm(tick: number, now: number): void {
    if (tick >= this.armedTick) return;
    this.cancelTimer?.();
    this.armedTick = tick;
    const delayMs = Math.max(0, tick * TICK_MICROS - now) / 1000;
    this.cancelTimer = this.clock.after(Math.max(1, Math.ceil(delayMs)), () => this.fire());
  }

  private fire(): void {
    this.armedTick = Infinity;
    this.cancelTimer = undefined;
    const now = this.clock.now();
    const nowTick = Math.floor(now / TICK_MICROS);
    this.collect(nowTick);
    // Ringing one may clear or set another, so nothing is rung while the slots are walked.
    for (const alarm of this.rung.splice(0)) if (alarm.tick !== 0) this.ring(alarm, nowTick);
    if (this.count > 0) this.arm(this.nextTick(nowTick), now);
  }

  private collect(nowTick: number): void {
    const from = Math.max(this.doneTick + 1, nowTick - SLOTS + 1);
    for (let tick = from; tick <= nowTick; tick++) {
      for (let one = this.slots[tick % SLOTS]; one !== undefined; one = one.after) {
        if (one.tick <= nowTick) this.rung.push(one);
      }
    }
    this.doneTick = Math.max(this.doneTick, nowTick);
  }

  private ring(alarm: Alarm, nowTick: number): void {
    // Another one's ringing may have set it anew.
    if (alarm.tick > nowTick) return;
    this.clear(alarm);
    alarm.ring();
  }

  private nextTick(nowTick: number): number {
    const farthest = nowTick + FARTHEST_TICKS;
    for (let tick = nowTick + 1; tick < farthest; tick++) {
      if (this.slots[tick % SLOTS] !== undefined) return tick;
    }
    return farthest;
  }
}
