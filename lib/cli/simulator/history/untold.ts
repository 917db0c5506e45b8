import { type NeededDepth } from '../measure/need.js';

interface Passed {
  readonly tokens: number;
  readonly second: number;
}

/**
 * Tokens that passed by shares: first the store has yet to hear of them, then they are a debt that flows
 * in again. Both together is by how much a fleet may exceed what the store gives; what is lost on the way
 * is allowed for. The debt counts as the largest that it can be: that a late grant has paid a part of it is
 * not known from outside.
 */
export class Untold {
  private readonly passed = new Map<string, Passed[]>();
  private tokens = 0;
  private debt = 0;
  private last = 0;

  constructor(private readonly inAll: NeededDepth) {}

  pass(process: string, tokens: number, second: number): void {
    let passed = this.passed.get(process);
    if (passed === undefined) this.passed.set(process, (passed = []));
    passed.push({ tokens, second });
    this.tokens += tokens;
  }

  /**
   * The store has heard of all that had passed at a process before that instant. What passed for longer
   * than an empty bucket takes to fill is forgotten, and so is what is more than a bucket.
   */
  tell(process: string, before: number, rate: number, burst: number, second: number): void {
    const passed = this.passed.get(process) ?? [];
    const told = passed.filter((one) => one.second < before);
    if (told.length === 0) return;
    this.passed.set(process, passed.slice(told.length));
    const tokens = told.reduce((sum, one) => sum + one.tokens, 0);
    this.tokens -= tokens;
    const isLong = second - told[0]!.second >= (burst / rate) * NEARLY;
    if (isLong) return this.inAll.allow(tokens, second);
    this.flow(rate, second);
    this.debt += tokens;
    if (this.debt > burst) this.inAll.allow(this.debt - burst, second);
    this.debt = Math.min(this.debt, burst);
  }

  most(rate: number, second: number): number {
    this.flow(rate, second);
    return this.tokens + this.debt;
  }

  private flow(rate: number, second: number): void {
    this.debt = Math.max(0, this.debt - rate * (second - this.last));
    this.last = second;
  }
}

/** Whole microseconds and messages on their way are a little of it. */
const NEARLY = 0.9;
