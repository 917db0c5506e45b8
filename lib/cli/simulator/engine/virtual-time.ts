import { type Cancel, type Clock } from '../../../common/clock.js';

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Not 0, which state uses for "never". */
export const START_MICROS = 1_000_000;

/** The longest chain of promises between a reply of the ledger and what it leads to is shorter. */
const TURNS_TO_SETTLE = 8;

/** The time that machines and networks run on: virtual, or that of this process. */
export interface Timeline extends Clock {
  needsSettling: boolean;
  /** Runs a task at that instant; of several, the first one given runs first. */
  at(atMicros: number, run: () => void): void;
}

/** Time that jumps from event to event; a heap of what is to come. */
export class VirtualTime implements Timeline {
  /** Set by whoever resolved a promise: its followers run before the next event does. */
  needsSettling = false;
  private micros = START_MICROS;
  private readonly heap: Event[] = [];
  private order = 0;

  constructor(private readonly turnsToSettle = TURNS_TO_SETTLE) {}

  now(): number {
    return this.micros;
  }

  /** Seconds since the start. */
  seconds(): number {
    return (this.micros - START_MICROS) / 1e6;
  }

  epochMs(micros: number): number {
    return micros / 1000;
  }

  after(delayMs: number, run: () => void): Cancel {
    let isCancelled = false;
    this.at(this.micros + delayMs * 1000, () => {
      if (!isCancelled) run();
    });
    return () => (isCancelled = true);
  }

  every(intervalMs: number, run: () => void): Cancel {
    let cancel: Cancel = () => {};
    const again = (): void => {
      cancel = this.after(intervalMs, again);
      run();
    };
    cancel = this.after(intervalMs, again);
    return () => cancel();
  }

  soon(run: () => void): Cancel {
    return this.after(0, run);
  }

  /** Nothing that runs on time itself may differ between two runs. */
  random(): number {
    return 0;
  }

  at(at: number, run: () => void): void {
    const { heap } = this;
    const event = { at, order: this.order++, run };
    let i = heap.push(event) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = event;
  }

  /** Runs everything up to that second; promises settle after each event. */
  async runUntil(second: number): Promise<void> {
    const until = START_MICROS + second * 1e6;
    await this.settle();
    for (let next = this.heap[0]; next !== undefined && next.at <= until; next = this.heap[0]) {
      this.pop();
      this.micros = Math.max(this.micros, next.at);
      next.run();
      if (this.needsSettling) await this.settle();
    }
    this.micros = until;
  }

  private async settle(): Promise<void> {
    if (!this.needsSettling) return;
    this.needsSettling = false;
    for (let turn = 0; turn < this.turnsToSettle; turn++) await Promise.resolve();
  }

  private pop(): void {
    const { heap } = this;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}
