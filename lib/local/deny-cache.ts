import { ownText, spread } from '../common/ids.js';

/** Two keys that meet in one of these may cost each other a call to the store, and nothing else. */
const GENERATIONS = 1024;

export interface Denial {
  /** Local instant until which the denial is remembered. */
  readonly untilMicros: number;
  /** Local instant at which the store expects to have the tokens of the request. */
  readonly dueMicros: number;
  /** The cost of the request; less than this might still be there. */
  readonly cost: number;
  /** The level of the bucket, by the store's answer. */
  readonly level: number;
}

/**
 * Denials of a shared store, remembered until they may end, so that a flood costs the store next to
 * nothing. Forgetting one too early is harmless: the next request goes to the store.
 */
export class DenyCache {
  private readonly denials = new Map<string, Denial>();
  /**
   * How often tokens came back early, by a hash of the key. A denial from before the latest of these
   * says nothing any more, so a call in between remembers nothing.
   */
  private readonly generations = new Uint32Array(GENERATIONS);

  constructor(private readonly maxKeys: number) {}

  get size(): number {
    return this.denials.size;
  }

  find(key: string, cost: number, now: number): Denial | undefined {
    if (this.denials.size === 0) return undefined;
    const denial = this.denials.get(key);
    if (denial === undefined) return undefined;
    if (now >= denial.untilMicros) {
      this.denials.delete(key);
      return undefined;
    }
    return cost >= denial.cost ? denial : undefined;
  }

  remember(key: string, denial: Denial): void {
    this.denials.delete(key);
    if (this.denials.size >= this.maxKeys) this.forgetOldest();
    this.denials.set(ownText(key), denial);
  }

  forget(key: string): void {
    this.generations[spread(key, GENERATIONS)]!++;
    this.denials.delete(key);
  }

  generationOf(key: string): number {
    return this.generations[spread(key, GENERATIONS)]!;
  }

  /** Drops denials that are over; called now and then, for keys without further requests. */
  sweep(now: number): void {
    for (const [key, denial] of this.denials) {
      if (now >= denial.untilMicros) this.denials.delete(key);
    }
  }

  private forgetOldest(): void {
    for (const oldest of this.denials.keys()) {
      this.denials.delete(oldest);
      return;
    }
  }
}
