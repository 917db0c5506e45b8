/** A call that waits for a slot. The links are the queue's own. */
export interface SlotWaiter {
  queuedBefore: SlotWaiter | undefined;
  queuedAfter: SlotWaiter | undefined;
  /** Where it waits. */
  queue: Bulkhead | undefined;
  /** It has a slot now, which it has to release. */
  admitted(from: Bulkhead): void;
}

/**
 * So many calls at a time; others wait in the order in which they came, and only so many of them.
 * No call overtakes another: a slot that becomes free belongs to the first in line.
 */
export class Bulkhead {
  inFlight = 0;
  waiting = 0;
  private first: SlotWaiter | undefined;
  private last: SlotWaiter | undefined;
  private isServing = false;

  constructor(
    private maxInFlight: number,
    private maxQueue: number,
  ) {}

  get isFull(): boolean {
    return this.waiting >= this.maxQueue;
  }

  tryTake(): boolean {
    if (this.inFlight >= this.maxInFlight || this.first !== undefined) return false;
    this.inFlight++;
    return true;
  }

  /** Puts a waiter at the end of the line. */
  join(waiter: SlotWaiter): void {
    waiter.queuedBefore = this.last;
    waiter.queue = this;
    if (this.last === undefined) this.first = waiter;
    else this.last.queuedAfter = waiter;
    this.last = waiter;
    this.waiting++;
  }

  /** Takes a waiter out of the line, wherever it stands. */
  leave(waiter: SlotWaiter): void {
    if (waiter.queue !== this) return;
    const { queuedBefore: before, queuedAfter: after } = waiter;
    if (before === undefined) this.first = after;
    else before.queuedAfter = after;
    if (after === undefined) this.last = before;
    else after.queuedBefore = before;
    waiter.queuedBefore = waiter.queuedAfter = undefined;
    waiter.queue = undefined;
    this.waiting--;
  }

  release(): void {
    this.inFlight--;
    if (this.first !== undefined) this.serve();
  }

  /** Takes effect at once; calls above a smaller size end in their own time. */
  resize(maxInFlight: number, maxQueue: number): void {
    this.maxInFlight = maxInFlight;
    this.maxQueue = maxQueue;
    this.serve();
  }

  /** A call that fails at once gives its slot back from in here: a loop, so that no stack grows. */
  private serve(): void {
    if (this.isServing) return;
    this.isServing = true;
    try {
      while (this.first !== undefined && this.inFlight < this.maxInFlight) {
        const next = this.first;
        this.leave(next);
        this.inFlight++;
        next.admitted(this);
      }
    } finally {
      this.isServing = false;
    }
  }
}
