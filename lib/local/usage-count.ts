import { type Consumption } from '../algorithms/quota/quota-protocol.js';

/** Beyond so many methods all others count as one: names may come from outside. */
const MOST_METHODS = 64;
const OTHER_METHODS = '(other)';

/** What requests consumed of an app on this node, until the store is told. */
export class UsageCount {
  private cost = 0;
  /** Requests. */
  count = 0;
  private since = 0;
  private methods = new Map<string, { cost: number; count: number }>();

  add(cost: number, method: string | undefined): void {
    this.cost += cost;
    this.count++;
    if (method !== undefined) this.addMethod(cost, method);
  }

  /** Undefined if there was none. */
  take(now: number): Consumption | undefined {
    const { cost, count, methods, since } = this;
    this.since = now;
    if (count === 0) return undefined;
    this.cost = 0;
    this.count = 0;
    this.methods = new Map();
    const periodMs = since === 0 ? 0 : Math.round((now - since) / 1000);
    return {
      cost,
      count,
      periodMs,
      methods: Array.from(methods, ([method, use]) => ({ method, ...use })),
    };
  }

  private addMethod(cost: number, method: string): void {
    let use = this.methods.get(method);
    if (use === undefined) {
      const name = this.methods.size < MOST_METHODS ? method : OTHER_METHODS;
      use = this.methods.get(name) ?? { cost: 0, count: 0 };
      this.methods.set(name, use);
    }
    use.cost += cost;
    use.count++;
  }
}
