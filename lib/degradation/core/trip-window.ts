import { type RecoveryFigures } from './options.js';

const PARTS = 10;

/**
 * Counts calls, failures and slow calls over the last span, in ten parts of it: the oldest part is
 * dropped whole. Every record is a few additions, whatever the traffic.
 */
export class TripWindow {
  private readonly calls = new Uint32Array(PARTS);
  private readonly failed = new Uint32Array(PARTS);
  private readonly slow = new Uint32Array(PARTS);
  private readonly partMicros: number;
  private part = -1;
  private totalCalls = 0;
  private totalFailed = 0;
  private totalSlow = 0;

  constructor(private figures: RecoveryFigures) {
    this.partMicros = (figures.windowMs * 1000) / PARTS;
  }

  /** Too many failures or slow calls, as of the call that has just ended; a success may make the volume. */
  record(now: number, isFailure: boolean, isSlow: boolean): 'errors' | 'slow' | undefined {
    const part = Math.floor(now / this.partMicros);
    if (part !== this.part) this.moveTo(part);
    const slot = part % PARTS;
    this.calls[slot]!++;
    this.totalCalls++;
    if (isFailure) {
      this.failed[slot]!++;
      this.totalFailed++;
    }
    if (isSlow) {
      this.slow[slot]!++;
      this.totalSlow++;
    }
    return this.verdict();
  }

  /** Goes on counting by other figures; false if they are about another span. */
  takes(figures: RecoveryFigures): boolean {
    if (figures.windowMs !== this.figures.windowMs) return false;
    this.figures = figures;
    return true;
  }

  clear(): void {
    this.calls.fill(0);
    this.failed.fill(0);
    this.slow.fill(0);
    this.totalCalls = this.totalFailed = this.totalSlow = 0;
  }

  private verdict(): 'errors' | 'slow' | undefined {
    const { minCalls, errorRate, slowRate } = this.figures;
    if (this.totalCalls < minCalls) return undefined;
    if (this.totalFailed >= errorRate * this.totalCalls) return 'errors';
    return this.totalSlow >= slowRate * this.totalCalls ? 'slow' : undefined;
  }

  private moveTo(part: number): void {
    const passed = part - this.part;
    this.part = part;
    if (passed >= PARTS || passed < 0) return this.clear();
    for (let i = 0; i < passed; i++) this.drop((part - i) % PARTS);
  }

  private drop(slot: number): void {
    this.totalCalls -= this.calls[slot]!;
    this.totalFailed -= this.failed[slot]!;
    this.totalSlow -= this.slow[slot]!;
    this.calls[slot] = this.failed[slot] = this.slow[slot] = 0;
  }
}
