import { type VirtualTime } from '../engine/virtual-time.js';
import { type VirtualLinks } from '../redis/virtual-links.js';
import { type VirtualRedis } from '../redis/virtual-redis.js';
import { type FaultEvent } from './faults.js';
import { type SimulatedProcess } from './simulated-process.js';

/** The parts that faults are done to. */
export interface Stage {
  readonly decisionTimeoutMs: number;
  readonly time: VirtualTime;
  readonly links: VirtualLinks;
  readonly server: VirtualRedis;
  /** One process each; none while it is gone. */
  readonly slots: (SimulatedProcess | undefined)[];
  start(slot: number): void;
  /** The store forgets, or its clock jumps; so much of what happened was not replicated. */
  lost(lagSeconds: number): void;
  /** A process stands still for so long. */
  stalled(process: SimulatedProcess, forSeconds: number): void;
  /** Answers are late by up to so much. */
  late(seconds: number): void;
}

/** Three failures open a breaker; the first call may have been sent just before. */
const TIMEOUTS_TO_NOTICE = 4;

/** Lets faults happen, and knows when the last of them is over. */
export class FaultInjector {
  lastEndMs = 0;
  private latestMs = 0;
  private downUntil = 0;
  private pausedUntil = 0;
  private laggingSince: number | undefined;

  constructor(private readonly stage: Stage) {}

  strike(event: FaultEvent): void {
    const endMs = this.stage.time.seconds() * 1000 + this.lastsMs(event);
    this.lastEndMs = Math.max(this.lastEndMs, endMs);
    this.inflict(event);
    this.stage.late(this.unansweredMs(event) / 1000);
    const lateMs = this.lateMs(event);
    if (lateMs > this.latestMs) this.stage.late((lateMs - this.latestMs) / 1000);
    this.latestMs = Math.max(this.latestMs, lateMs);
  }

  /** On a connection that is half-open the answers to a few calls never come before that is known. */
  private unansweredMs(event: FaultEvent): number {
    return event.kind === 'half-open' ? TIMEOUTS_TO_NOTICE * this.stage.decisionTimeoutMs : 0;
  }

  private lateMs(event: FaultEvent): number {
    if (event.kind === 'late') return event.ms;
    return event.kind === 'pause' || event.kind === 'stall' ? event.forMs : 0;
  }

  private lastsMs(event: FaultEvent): number {
    switch (event.kind) {
      case 'late':
        return event.forMs + event.ms;
      case 'pause':
      case 'down':
      case 'stall':
        return event.forMs;
      case 'restart':
        return event.downMs;
      case 'crash':
      case 'leave':
        return event.backAfterMs;
      default:
        return 0;
    }
  }

  private inflict(event: FaultEvent): void {
    const { links, server, time, slots } = this.stage;
    switch (event.kind) {
      case 'late':
        return links.delay(event.ms, event.forMs, this.nameOf(event.process));
      case 'pause':
        return this.pause(event.forMs);
      case 'down':
        return this.goDown(event.forMs);
      case 'drop':
        return links.drop(this.nameOf(event.process));
      case 'half-open':
        for (const one of links.of(this.nameOf(event.process))) one.isDeaf = true;
        return;
      case 'reply':
        for (const one of links.of(this.nameOf(event.process))) {
          one.nextReply = event.fault;
          one.faultOf = event.of;
        }
        return;
      case 'flush':
        this.stage.lost(0);
        return server.flush();
      case 'lag':
        this.laggingSince ??= time.seconds();
        return server.fallBehind();
      case 'restart':
        return this.restart(event.keeps, event.downMs);
      case 'clock':
        this.stage.lost(0);
        return server.stepClock(event.ms);
      case 'stall':
        return this.stall(slots[event.process], event.forMs);
      case 'crash':
      case 'leave':
        return this.replace(event.process, event.kind, event.backAfterMs);
    }
  }

  private stall(process: SimulatedProcess | undefined, forMs: number): void {
    if (process === undefined) return;
    process.stall(forMs);
    this.stage.stalled(process, forMs / 1000);
  }

  private pause(forMs: number): void {
    const { server, time } = this.stage;
    server.pause();
    this.pausedUntil = Math.max(this.pausedUntil, time.now() + forMs * 1000);
    time.at(this.pausedUntil, () => {
      if (time.now() >= this.pausedUntil) server.goOn();
    });
  }

  private goDown(forMs: number): void {
    const { links, time } = this.stage;
    links.isDown = true;
    links.drop();
    this.downUntil = Math.max(this.downUntil, time.now() + forMs * 1000);
    time.at(this.downUntil, () => {
      if (time.now() >= this.downUntil) links.isDown = false;
    });
  }

  private restart(keeps: 'all' | 'nothing' | 'replica', downMs: number): void {
    const { server, time } = this.stage;
    const now = time.seconds();
    this.stage.lost(keeps === 'replica' ? now - (this.laggingSince ?? now) : 0);
    this.laggingSince = undefined;
    server.restart(keeps);
    this.goDown(downMs);
  }

  private replace(slot: number, kind: 'crash' | 'leave', backAfterMs: number): void {
    const { slots, time } = this.stage;
    if (kind === 'crash') slots[slot]?.kill();
    else slots[slot]?.leave();
    slots[slot] = undefined;
    time.after(backAfterMs, () => {
      if (slots[slot] === undefined) this.stage.start(slot);
    });
  }

  /** Undefined for all of them. */
  private nameOf(slot: number): string | undefined {
    return slot < 0 ? undefined : (this.stage.slots[slot]?.view.name ?? 'nobody');
  }
}
