/** The outcome of a call. `neutral` means nothing for the resource: a caller that hung up, a 4xx. */
export type CallOutcome = 'success' | 'failure' | 'neutral';

/** The last calls, by number or by time: how many, how many failed, how many were slow. */
export interface OutcomeWindow {
  readonly calls: number;
  readonly failures: number;
  readonly slow: number;
  record(now: number, failed: boolean, slow: boolean): void;
  clear(): void;
}

const FAILED = 1;
const SLOW = 2;

/** The last `size` calls, whenever they were. */
export class CountWindow implements OutcomeWindow {
  calls = 0;
  failures = 0;
  slow = 0;
  private readonly marks: Uint8Array;
  private next = 0;

  constructor(private readonly size: number) {
    this.marks = new Uint8Array(size);
  }

  record(_now: number, failed: boolean, slow: boolean): void {
    const { marks, next, size } = this;
    if (this.calls === size) this.forget(marks[next]!);
    else this.calls++;
    marks[next] = (failed ? FAILED : 0) | (slow ? SLOW : 0);
    if (failed) this.failures++;
    if (slow) this.slow++;
    this.next = next + 1 === size ? 0 : next + 1;
  }

  clear(): void {
    this.calls = this.failures = this.slow = this.next = 0;
  }

  private forget(mark: number): void {
    if ((mark & FAILED) !== 0) this.failures--;
    if ((mark & SLOW) !== 0) this.slow--;
  }
}

/** Parts of the window: a call is forgotten up to one part early. */
const PARTS = 10;

/** The calls of the last `micros`. */
export class TimeWindow implements OutcomeWindow {
  calls = 0;
  failures = 0;
  slow = 0;
  private readonly callsOf = new Float64Array(PARTS);
  private readonly failuresOf = new Float64Array(PARTS);
  private readonly slowOf = new Float64Array(PARTS);
  private readonly partMicros: number;
  /** When the part that is written now ends, and which one that is. */
  private endsAt = -Infinity;
  private part = 0;

  constructor(micros: number) {
    this.partMicros = micros / PARTS;
  }

  record(now: number, failed: boolean, slow: boolean): void {
    if (now >= this.endsAt) this.turnTo(now);
    const { part } = this;
    this.calls++;
    this.callsOf[part]!++;
    if (failed) {
      this.failures++;
      this.failuresOf[part]!++;
    }
    if (slow) {
      this.slow++;
      this.slowOf[part]!++;
    }
  }

  /** A call that was recorded before has failed after all. */
  fail(now: number): void {
    this.age(now);
    this.failures++;
    this.failuresOf[this.part]!++;
  }

  /** Forgets what is too old by now. */
  age(now: number): void {
    if (now >= this.endsAt) this.turnTo(now);
  }

  clear(): void {
    this.calls = this.failures = this.slow = 0;
    for (const counts of [this.callsOf, this.failuresOf, this.slowOf]) counts.fill(0);
    this.endsAt = -Infinity;
  }

  private turnTo(now: number): void {
    const { partMicros } = this;
    const turns = Math.floor((now - this.endsAt) / partMicros) + 1;
    if (turns >= PARTS) {
      this.clear();
      this.endsAt = now + partMicros;
      return;
    }
    for (let turn = 0; turn < turns; turn++) this.forgetOldest();
    this.endsAt += turns * partMicros;
  }

  private forgetOldest(): void {
    const part = (this.part = (this.part + 1) % PARTS);
    this.calls -= this.callsOf[part]!;
    this.failures -= this.failuresOf[part]!;
    this.slow -= this.slowOf[part]!;
    this.callsOf[part] = this.failuresOf[part] = this.slowOf[part] = 0;
  }
}
