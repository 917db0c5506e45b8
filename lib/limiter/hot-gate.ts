import { type Limit } from '../algorithms/limit.js';
import { HotValues, LARGEST_THRESHOLD, MOST_NAMES, type HotValue } from '../local/hot-values.js';

/** A value passes without a bucket up to its limit divided by this, on all nodes together. */
const UNCOUNTED_DIVISOR = 10;

/**
 * Tells the values of one limit that are in demand from the rest. A value that asked for no more than a
 * tenth of its limit in the last period, divided among the nodes, is cold: its requests pass, and neither
 * a bucket nor a call is spent on it. So a value is admitted at most 1.1 times what its bucket alone admits.
 */
export class HotGate {
  /** Values that always have a bucket, because they have a tier of their own. */
  alwaysHot: ReadonlyMap<string, unknown> = new Map();
  /** Made for the first request: most limits of a large configuration see none. */
  private values: HotValues | undefined = undefined;
  private nodes = 0;
  private threshold = 0;
  private isTold = false;

  constructor(
    readonly width: number,
    private readonly capacity: number,
    private readonly periodMicros: number,
    private readonly onIdle: (nodes: number) => void,
  ) {}

  /** Counts a request; the estimate of a cold value, undefined for a hot one. `nodes` is 0 if unknown. */
  pass(key: string, cost: number, nodes: number, now: number): number | undefined {
    if (this.alwaysHot.size > 0 && this.alwaysHot.has(key)) return undefined;
    if (nodes !== this.nodes) this.divide(nodes);
    this.values ??= new HotValues(this.width, this.periodMicros, now);
    // A node under load charges more than the cost, and not in whole tokens.
    const estimate = this.values.add(key, Math.ceil(cost), now);
    return estimate <= this.threshold ? estimate : undefined;
  }

  /** The same for a request that is not made. */
  estimateIfCold(key: string, cost: number, now: number): number | undefined {
    if (this.alwaysHot.has(key)) return undefined;
    const estimate = this.values?.estimate(key, now) ?? 0;
    return estimate + cost <= this.threshold ? estimate : undefined;
  }

  /** Whether all requests of the value in the last period passed without a bucket. */
  isCold(key: string, now: number): boolean {
    return this.estimateIfCold(key, 0, now) !== undefined;
  }

  /** Tokens per second that the value asked for in the last period. */
  rateOf(key: string, now: number): number {
    return ((this.values?.recent(key, now) ?? 0) * 1_000_000) / this.periodMicros;
  }

  /** Number of values in demand, of those whose names are known. */
  inDemand(now: number): number {
    const named = this.values?.top(MOST_NAMES, now) ?? [];
    return named.filter(({ perPeriod }) => perPeriod > this.threshold).length;
  }

  top(count: number, now: number): HotValue[] {
    return this.values?.top(count, now) ?? [];
  }

  private divide(nodes: number): void {
    this.nodes = nodes;
    this.threshold = nodes === 0 ? 0 : thresholdOf(this.capacity, nodes);
    if (this.threshold > 0 || nodes === 0 || this.isTold) return;
    this.isTold = true;
    this.onIdle(nodes);
  }
}

export function thresholdOf(capacity: Limit['capacity'], nodes: number): number {
  return Math.min(LARGEST_THRESHOLD, Math.floor(capacity / (UNCOUNTED_DIVISOR * nodes)));
}
