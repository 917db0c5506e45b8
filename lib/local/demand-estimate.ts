/** Demand is counted in slots of this length; for giving back, "just now" is one slot. */
export const SLOT_MICROS = 50_000;

/** A slot that has just begun says nothing yet. */
const LEAST_MICROS = 10_000;

/** The part of the distance to a lower demand that the peak falls in one slot. */
const DECAY = 0.1;
/** Two slots in a row below this part of the peak mean that demand has gone; one may be a pause. */
const COLLAPSED = 0.25;
/** The same as DECAY, for demand that has gone: the stock should go too. */
const COLLAPSE = 0.5;
/** The mean follows in both directions, so that the sum over a fleet is not biased. */
export const MEAN_WEIGHT = 0.3;
/** The cost of a request follows that of the last thirty or so. */
const COST_WEIGHT = 1 / 32;

/**
 * The demand of callers, admitted or not, in tokens per second. `peak` rises at once and falls
 * slowly, so that stock is there before it is missed; `mean` goes into the calls to the store.
 */
export class DemandEstimate {
  private slotStart = 0;
  private inSlot = 0;
  private lastSlot = 0;
  peak = 0;
  mean = 0;
  /** The instant of the last request. */
  lastAt = -Infinity;
  /** The cost of a request, in the mean. */
  cost = 0;

  add(cost: number, now: number): void {
    if (now - this.slotStart >= SLOT_MICROS) this.roll(now);
    this.inSlot += cost;
    this.lastAt = now;
    this.cost += this.cost === 0 ? cost : (cost - this.cost) * COST_WEIGHT;
  }

  /** The peak, or the rate of the slot that has just begun if that is higher already. */
  risingRate(now: number): number {
    if (now - this.slotStart >= SLOT_MICROS) this.roll(now);
    const elapsed = Math.max(now - this.slotStart, LEAST_MICROS);
    return Math.max(this.peak, (this.inSlot * 1_000_000) / elapsed);
  }

  /** The demand of the last slot in tokens, or of this one if that is more already. */
  recent(now: number): number {
    if (now - this.slotStart >= SLOT_MICROS) this.roll(now);
    return Math.max(this.inSlot, this.lastSlot);
  }

  private hasCollapsed(): boolean {
    const most = Math.max(this.inSlot, this.lastSlot);
    return (most * 1_000_000) / SLOT_MICROS < this.peak * COLLAPSED;
  }

  /** Closes the slots that have passed; those after the first had no demand. */
  private roll(now: number): void {
    const passed = Math.floor((now - this.slotStart) / SLOT_MICROS);
    const rate = (this.inSlot * 1_000_000) / SLOT_MICROS;
    if (rate > this.peak) this.peak = rate;
    else this.peak += (rate - this.peak) * (this.hasCollapsed() ? COLLAPSE : DECAY);
    this.mean += (rate - this.mean) * MEAN_WEIGHT;
    this.lastSlot = passed === 1 ? this.inSlot : 0;
    if (passed > 1) {
      this.peak *= (1 - COLLAPSE) ** (passed - 1);
      this.mean *= (1 - MEAN_WEIGHT) ** (passed - 1);
    }
    this.inSlot = 0;
    this.slotStart += passed * SLOT_MICROS;
  }
}
