import { Line, type LineSettings, type Refusal, type LineWaiter } from '../../lib/overload/line.js';
import { type Turns } from '../../lib/overload/loop-turns.js';

export const SETTINGS: LineSettings = {
  targetMicros: 50_000,
  intervalMicros: 200_000,
  sliceMicros: 5000,
  maxWaiting: 1000,
  maxInFlight: Infinity,
  tierCount: 4,
  isObserved: false,
};

/** An event loop that turns when a test says so, on a clock that moves when work is done. */
export class ManualLoop implements Turns {
  now = 1_000_000_000;
  restedAt = this.now;
  isObserved = false;
  /** Ends of work, in order. */
  readonly order: string[] = [];
  private turnAt = this.now;
  private immediates: (() => void)[] = [];
  private timers: { at: number; task: () => void; isOn: boolean }[] = [];

  readonly clock = {
    now: (): number => this.now,
    every: (ms: number, task: () => void): (() => void) => {
      const timer = { at: this.now + ms * 1000, task, isOn: true };
      this.timers.push(timer);
      return () => void (timer.isOn = false);
    },
  };

  line(changes: Partial<LineSettings> = {}): Line {
    return new Line({ ...SETTINGS, ...changes }, this, this.clock, (task) => {
      this.immediates.push(task);
    });
  }

  age(now: number): number {
    return now - this.turnAt;
  }

  ended(): void {}

  /** Whether the loop would go on without anything from outside. */
  get isAwake(): boolean {
    return this.immediates.length > 0;
  }

  /** The immediates of this turn; then the next one begins. Gives the time that they took. */
  turn(): number {
    const begun = this.now;
    const tasks = this.immediates;
    this.immediates = [];
    try {
      while (tasks.length > 0) tasks.shift()!();
    } finally {
      this.immediates.unshift(...tasks);
    }
    this.turnAt = this.now;
    return this.now - begun;
  }

  /** All turns until nothing is left to do. */
  settle(): void {
    while (this.isAwake) this.turn();
  }

  spend(ms: number): void {
    this.now += ms * 1000;
  }

  /** Nothing to do for so long. */
  rest(ms: number): void {
    this.spend(ms);
    this.restedAt = this.now;
    this.turnAt = this.now;
    for (const timer of this.timers) if (timer.isOn && timer.at <= this.now) timer.task();
  }

  work(name: string, tier = 0, ms = 1): Work {
    return new Work(this, name, tier, ms);
  }
}

/** One piece of work, and what has become of it. */
export class Work implements LineWaiter {
  endings: ('ran' | Refusal)[] = [];
  hasLeft = false;
  ranAt = -1;

  constructor(
    private readonly loop: ManualLoop,
    readonly name: string,
    readonly tier: number,
    readonly ms: number,
  ) {}

  run(): void {
    this.endings.push('ran');
    this.ranAt = this.loop.now;
    this.loop.order.push(this.name);
    this.loop.spend(this.ms);
  }

  refuse(why: Refusal): void {
    this.endings.push(why);
    this.loop.now += 40;
  }

  isGone(): boolean {
    return this.hasLeft;
  }
}
