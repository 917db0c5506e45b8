import { Line, type LineSettings, type Refusal, type LineWaiter } from '../../lib/overload/line.js';
import { type Turns } from '../../lib/overload/loop-turns.js';

/** The end of one request, as its caller saw it. */
export type Ending = 'served' | 'full' | 'late' | 'unanswered';

export interface Served {
  readonly tier: number;
  /** When it was sent. */
  readonly at: number;
  /** Processor time that it takes. */
  readonly work: number;
  ending: Ending;
  /** When its answer was there. */
  answeredAt: number;
}

/** The gate between the framework and its callers: the line, or another law. */
export interface Admission {
  enter(one: LineWaiter): void;
  /** A connection was accepted. */
  connected?(): void;
  /** Called about every 500 ms of the loop, as late as the loop is. */
  tick?(now: number, busyMicros: number): void;
}

export interface Load {
  /** Offered work as a part of the capacity, at an instant. */
  readonly factorAt: (seconds: number) => number;
  readonly seconds: number;
  readonly seed: number;
  /** Mean processor time of a request; exponential. */
  readonly workMicros?: number;
  /** The wait of each request before its work, which takes no processor time. */
  readonly downstreamMicros?: (seconds: number) => number;
  /** A pause of 50 to 110 ms in each second, as a collector of garbage makes them. */
  readonly hasPauses?: boolean;
  /** Each request comes on a connection of its own. */
  readonly isNew?: boolean;
}

/** Parts of the tiers S, A, B and C in the traffic. */
const SHARES = [0.05, 0.15, 0.3, 0.5];
const REFUSAL_MICROS = 40;
const READ_MICROS = 1;
const PATIENCE_MICROS = 2_000_000;
const EVENTS_A_TURN = 1024;
const ACCEPT_MICROS = 100;
/** Connections that the kernel holds until they are accepted. */
const BACKLOG = 511;
const TICK_MICROS = 500_000;

/** A small generator with a seed (mulberry32). */
function randomOf(seed: number): () => number {
  let state = seed * 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * One thread of Node on virtual time: turns of a loop, a queue in the kernel that nobody sees, at most 1,024
 * events a turn, immediates after the poll. The line in it is the real one.
 */
export class ServerModel implements Turns {
  now = 1_000_000;
  restedAt = this.now;
  isObserved = false;
  readonly requests: Served[] = [];
  private turnAt = this.now;
  private immediates: (() => void)[] = [];
  /** Events that are not requests: ends of waits for a downstream. */
  private readonly wakeUps: { at: number; task: () => void }[] = [];
  private busyMicros = 0;
  /** Connections that wait in the kernel. */
  private readonly backlog: Served[] = [];
  /** The connection that was accepted in the last turn, whose request is read in this one. */
  private accepted: Served | undefined;

  constructor(private readonly load: Load) {}

  readonly soon = (task: () => void): void => void this.immediates.push(task);
  readonly clock = { now: () => this.now, every: () => () => {} };

  age(now: number): number {
    return now - this.turnAt;
  }

  ended(): void {}

  line(settings: LineSettings): Line {
    return new Line(settings, this, this.clock, this.soon);
  }

  run(admission: Admission): readonly Served[] {
    const begun = this.now;
    const end = begun + this.load.seconds * 1e6;
    const arrivals = this.arrivals(begun, end);
    const random = randomOf(this.load.seed + 1000);
    let next = 0;
    let tickAt = begun + TICK_MICROS;
    let pauseAt = begun + random() * 1e6;
    while (this.now < end) {
      if (this.now >= tickAt) {
        tickAt = this.now + TICK_MICROS;
        admission.tick?.(this.now, this.busyMicros);
        this.busyMicros = 0;
      }
      if (this.load.hasPauses === true && this.now >= pauseAt) {
        this.spend(50_000 + random() * 60_000);
        pauseAt += 1e6;
      }
      if (this.isIdle) this.sleepUntil(arrivals[next]?.at ?? end);
      this.turnAt = this.now;
      let events = 0;
      while (this.wakeUps.length > 0 && this.wakeUps[0]!.at <= this.turnAt) {
        this.wakeUps.shift()!.task();
        events++;
      }
      // Only what was there when the poll returned is read in this turn.
      while (next < arrivals.length && arrivals[next]!.at <= this.turnAt) {
        if (events++ >= EVENTS_A_TURN) break;
        const one = arrivals[next++]!;
        this.requests.push(one);
        if (this.load.isNew !== true) this.read(one, admission);
        else if (this.backlog.length < BACKLOG) this.backlog.push(one);
      }
      if (this.load.isNew === true) this.accept(admission);
      const tasks = this.immediates;
      this.immediates = [];
      for (const task of tasks) task();
    }
    // Callers that nobody has read yet wait in the kernel.
    for (; next < arrivals.length; next++) this.requests.push(arrivals[next]!);
    return this.requests;
  }

  private get isIdle(): boolean {
    const { immediates, backlog, accepted } = this;
    return immediates.length === 0 && backlog.length === 0 && accepted === undefined;
  }

  private read(one: Served, admission: Admission): void {
    this.spend(READ_MICROS);
    admission.enter(new ModelRequest(one, this));
  }

  /** One a turn, as Node does it. */
  private accept(admission: Admission): void {
    const before = this.accepted;
    this.accepted = this.backlog.shift();
    if (this.accepted !== undefined) {
      this.spend(ACCEPT_MICROS);
      admission.connected?.();
    }
    if (before !== undefined) this.read(before, admission);
  }

  spend(micros: number): void {
    this.now += micros;
    this.busyMicros += micros;
  }

  /** The handler: waits for its downstream, then works. */
  serve(one: Served): void {
    const wait = this.load.downstreamMicros?.(one.at / 1e6 - 1) ?? 0;
    if (wait === 0) return this.work(one);
    const at = this.now + wait;
    let place = this.wakeUps.length;
    while (place > 0 && this.wakeUps[place - 1]!.at > at) place--;
    this.wakeUps.splice(place, 0, { at, task: () => this.work(one) });
  }

  refuse(one: Served, why: Refusal): void {
    this.spend(REFUSAL_MICROS);
    one.ending = why;
    one.answeredAt = this.now;
  }

  isPatient(one: Served): boolean {
    return this.now - one.at < PATIENCE_MICROS;
  }

  private work(one: Served): void {
    this.spend(one.work);
    one.ending = this.now - one.at < PATIENCE_MICROS || this.isSlow(one) ? 'served' : 'unanswered';
    one.answeredAt = this.now;
  }

  private isSlow(one: Served): boolean {
    return (this.load.downstreamMicros?.(one.at / 1e6 - 1) ?? 0) > 0;
  }

  private sleepUntil(arrival: number): void {
    const wakeUp = Math.min(arrival, this.wakeUps[0]?.at ?? Infinity);
    if (wakeUp <= this.now) return;
    if (wakeUp - this.now > 200) this.restedAt = wakeUp;
    this.now = wakeUp;
  }

  private arrivals(begun: number, end: number): Served[] {
    const { factorAt, seed, workMicros = 4000 } = this.load;
    const random = randomOf(seed);
    const exponential = (mean: number): number => -mean * Math.log(1 - random());
    const all: Served[] = [];
    for (let at = begun; ;) {
      at += exponential(workMicros / factorAt((at - begun) / 1e6));
      if (at >= end) return all;
      const draw = random();
      let tier = 0;
      for (let sum = SHARES[0]!; draw >= sum && tier < 3; sum += SHARES[tier]!) tier++;
      all.push({ tier, at, work: exponential(workMicros), ending: 'unanswered', answeredAt: 0 });
    }
  }
}

class ModelRequest implements LineWaiter {
  readonly tier: number;

  constructor(
    private readonly one: Served,
    private readonly server: ServerModel,
  ) {
    this.tier = one.tier;
  }

  run(): void {
    this.server.serve(this.one);
  }

  refuse(why: Refusal): void {
    this.server.refuse(this.one, why);
  }

  isGone(): boolean {
    return !this.server.isPatient(this.one);
  }
}

const GOOD_MICROS = 250_000;

/** The figures of a run, from `from` seconds on. */
export function figuresOf(requests: readonly Served[], seconds: number, from = 0, to = seconds) {
  const begun = 1_000_000;
  const inSpan = requests.filter(({ at }) => at >= begun + from * 1e6 && at < begun + to * 1e6);
  const isGood = (one: Served): boolean =>
    one.ending === 'served' && one.answeredAt - one.at <= GOOD_MICROS;
  const served = inSpan.filter(({ ending }) => ending === 'served');
  const waits = served.map((one) => one.answeredAt - one.at).sort((a, b) => a - b);
  const partOf = (tier: number): number => {
    const all = inSpan.filter((one) => one.tier === tier);
    return all.filter(isGood).length / all.length;
  };
  const refused = inSpan.filter(({ ending }) => ending === 'full' || ending === 'late');
  return {
    goodput: sum(inSpan.filter(isGood)) / ((to - from) * 1e6),
    p99Ms: (waits[Math.floor(waits.length * 0.99)] ?? 0) / 1000,
    tiers: [0, 1, 2, 3].map(partOf),
    shed: refused.length / inSpan.length,
    unanswered: inSpan.filter(({ ending }) => ending === 'unanswered').length / inSpan.length,
    unsteadiness: unsteadinessOf(requests.filter(isGood), seconds),
  };
}

const sum = (all: readonly Served[]): number => all.reduce((total, { work }) => total + work, 0);

/** Deviation of the goodput of half seconds, as a part of its mean; the first second does not count. */
function unsteadinessOf(good: readonly Served[], seconds: number): number {
  const halves = new Array<number>(seconds * 2).fill(0);
  for (const one of good) {
    const half = Math.floor((one.answeredAt - 1_000_000) / 500_000);
    if (half >= 0 && half < halves.length) halves[half]! += one.work;
  }
  const counted = halves.slice(2);
  const mean = counted.reduce((a, b) => a + b, 0) / counted.length;
  const variance = counted.reduce((a, b) => a + (b - mean) ** 2, 0) / counted.length;
  return Math.sqrt(variance) / mean;
}

export function median(figures: readonly number[]): number {
  return [...figures].sort((a, b) => a - b)[Math.floor(figures.length / 2)]!;
}
