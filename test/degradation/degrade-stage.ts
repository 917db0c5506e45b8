import { type ManualClock } from '../support/manual-clock.js';

/** The next results of handlers, and how often they were called: one for each application. */
export class Stage {
  calls = 0;
  /** Whether the requests that come are over their limit. */
  isLimited = false;
  private act: () => unknown = () => this.fresh();
  private entries: (() => void)[] = [];
  private finishes: ((value: unknown) => void)[] = [];

  constructor(readonly clock: ManualClock) {}

  fresh(): object {
    return { name: 'kettle', price: 30, call: this.calls };
  }

  /** Called by every handler. */
  play(): unknown {
    this.calls++;
    const answer = this.act();
    for (const tell of this.entries.splice(0)) tell();
    return answer;
  }

  works(): void {
    this.isLimited = false;
    this.act = () => this.fresh();
  }

  does(act: () => unknown): void {
    this.act = act;
  }

  throws(error: unknown): void {
    this.act = () => {
      throw error;
    };
  }

  /** Does not answer until it is told to. */
  hangs(): void {
    this.act = () => new Promise((resolve) => this.finishes.push(resolve));
  }

  /** Resolves when so many more requests are at their handler. */
  async entered(requests = 1): Promise<void> {
    for (let i = 0; i < requests; i++) await new Promise<void>((tell) => this.entries.push(tell));
  }

  /** How many handlers have not answered. */
  get pending(): number {
    return this.finishes.length;
  }

  finish(value: unknown = this.fresh()): void {
    for (const finish of this.finishes.splice(0)) finish(value);
  }
}
