/** No fewer calls and no less time say anything about the resource. */
const LEAST_CALLS = 20;
const LEAST_MICROS = 500_000;
/** So much longer than usual a call may take before fewer go at once. */
const TOLERANCE = 1.5;
const SMOOTHING = 0.2;
/** A window has this part in what is usual. */
const USUAL_PART = 0.1;
const AFTER_DEADLINE = 0.9;
const FLOOR = 4;
/** Enough for a median; further calls of a window are not measured. */
const MOST_SAMPLES = 256;

/**
 * How many calls may be under way at once, by how long they take: fewer when the median of a window is well
 * above what is usual, √limit more when it is not and the limit is in use. For one resource only: where
 * calls take longer for reasons of their own, they are refused for nothing.
 */
export class Gradient {
  limit: number;
  private readonly samples = new Float64Array(MOST_SAMPLES);
  private count = 0;
  private windowSince = -Infinity;
  private most = 0;
  private hadDeadline = false;
  private usualMicros = 0;

  constructor(private ceiling: number) {
    this.limit = ceiling;
  }

  /** Another ceiling; what is known of the resource stays. */
  cap(ceiling: number): void {
    const wasAtCeiling = this.limit === this.ceiling;
    this.ceiling = ceiling;
    this.limit = wasAtCeiling ? ceiling : Math.min(this.limit, ceiling);
  }

  /** A call has ended well, `inFlight` counting it. True if there is another limit now. */
  ended(micros: number, inFlight: number, now: number): boolean {
    if (this.windowSince === -Infinity) this.windowSince = now;
    if (this.count < MOST_SAMPLES) this.samples[this.count] = micros;
    this.count++;
    if (inFlight > this.most) this.most = inFlight;
    if (this.count < LEAST_CALLS || now - this.windowSince < LEAST_MICROS) return false;
    return this.conclude(now);
  }

  /** A call has taken longer than its deadline. */
  missedDeadline(): void {
    this.hadDeadline = true;
  }

  private conclude(now: number): boolean {
    const before = this.limit;
    const median = this.median();
    const usual = (this.usualMicros ||= median);
    const gradient = Math.max(0.5, Math.min(1, (TOLERANCE * usual) / median));
    const room = gradient === 1 ? Math.sqrt(before) : 0;
    let next = (1 - SMOOTHING) * before + SMOOTHING * (before * gradient + room);
    if (next > before && this.most < before / 2) next = before;
    if (this.hadDeadline) next *= AFTER_DEADLINE;
    this.limit = Math.min(this.ceiling, Math.max(Math.min(FLOOR, this.ceiling), next));
    this.usualMicros = usual + USUAL_PART * (median - usual);
    this.count = this.most = 0;
    this.hadDeadline = false;
    this.windowSince = now;
    return Math.floor(this.limit) !== Math.floor(before);
  }

  private median(): number {
    const samples = this.samples.subarray(0, Math.min(this.count, MOST_SAMPLES)).sort();
    return Math.max(1, samples[samples.length >> 1]!);
  }
}
