/** Requests of which something is known, in order of time: when, in seconds, and of which app. */
export interface Requests {
  readonly at: readonly number[];
  readonly app: readonly number[];
}

/** The outcomes of the requests of a run. */
export class Observations {
  readonly offeredAt: number[] = [];
  readonly offeredApp: number[] = [];
  readonly admittedAt: number[] = [];
  readonly admittedApp: number[] = [];
  /** Decisions that waited for the store. */
  waited = 0;

  offered(second: number, app: number): void {
    this.offeredAt.push(second);
    this.offeredApp.push(app);
  }

  waits(): void {
    this.waited++;
  }

  decided(second: number, app: number, allowed: boolean): void {
    if (!allowed) return;
    this.admittedAt.push(second);
    this.admittedApp.push(app);
  }
}
