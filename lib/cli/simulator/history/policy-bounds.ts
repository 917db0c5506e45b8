import { NeededDepth, SpanSum } from '../measure/need.js';
import { type FleetView, type ProcessView } from './fleet-view.js';
import { type PolicyPlan } from './plan.js';
import { Untold } from './untold.js';

/** Sums of floats; no check is about so little. */
const EDGE_TOKENS = 1e-6;
const WINDOW_PART = 0.9;

/** The admissions of one key. */
interface KeyCount {
  readonly fromStore: NeededDepth;
  readonly inWindow: SpanSum;
  readonly byShare: NeededDepth;
  readonly inAll: NeededDepth;
  readonly untold: Untold;
  /** Instants by process at which the store answered for the key, after something had passed without it. */
  readonly answeredAt: Map<string, number>;
  /** Tokens given back of which it is not known whether they have arrived. */
  refunding: number;
  /** The same by process, of which the store has not heard. */
  readonly announced: Map<string, number>;
  /** Tokens left by process: granted by the store, neither given back nor used. */
  readonly left: Map<string, number>;
}

/**
 * The bounds of a policy as they are stated: what the store grants is never more than the bucket, what
 * processes allow by themselves never more than their shares, and both together never more than the
 * bucket and what an outage may add. Everything is in tokens and seconds, counted from outside.
 */
export class PolicyBounds {
  private readonly keys = new Map<string, KeyCount>();
  private rate: number;
  private burst: number;
  /** Tokens that losses of state, steps of the clock, resets and changes may have added. */
  private added = 0;
  private shareDepth = 0;
  private joinedDepth = 0;
  /** The longest delay of an answer. */
  private latestSeconds = 0;

  constructor(
    private readonly policy: PolicyPlan,
    private readonly maxCost: number,
    private readonly fleet: FleetView,
  ) {
    this.rate = (policy.rate * 1000) / policy.periodMs;
    this.burst = policy.kind === 'window' ? policy.rate : policy.burst;
  }

  /** The store forgets, or has time jump: at most one bucket more, and what was on lease. */
  lose(): void {
    this.added += 2 * this.burst;
  }

  /** Answers may come so much later from now on. */
  late(seconds: number): void {
    this.latestSeconds += seconds;
  }

  /** A process that is started later has a share of its own, and knows of no other before it hears. */
  joined(): void {
    this.joinedDepth += this.burst;
  }

  change(rate: number, burst: number, second: number): void {
    this.pass();
    this.added += 2 * Math.max(burst, this.burst);
    this.rate = rate;
    this.burst = burst;
    for (const { fromStore, byShare, inAll } of this.keys.values()) {
      for (const need of [fromStore, byShare, inAll]) need.change(rate, second);
    }
  }

  /**
   * The store answers for a key: the process tells it what passed. The next question goes the same way,
   * so with the answer to that it has heard.
   */
  answered(process: string, key: string, begun: number, second: number): void {
    const { untold, answeredAt } = this.countOf(key);
    const before = answeredAt.get(process);
    if (before === undefined) answeredAt.set(process, second);
    else if (begun > before) {
      untold.tell(process, before, this.rate, this.burst, second);
      answeredAt.set(process, second);
    }
  }

  granted(process: string, key: string, tokens: number): void {
    const { left } = this.countOf(key);
    left.set(process, (left.get(process) ?? 0) + tokens);
  }

  refundBegun(process: string, key: string, tokens: number): void {
    const count = this.countOf(key);
    count.refunding += tokens;
    count.announced.set(process, (count.announced.get(process) ?? 0) + tokens);
    count.left.set(process, (count.left.get(process) ?? 0) + tokens);
  }

  /**
   * The store has tokens back. A caller gave them back, or a list was denied for which a process had
   * used tokens on lease: then they were never admitted, and whoever is next may have them.
   */
  refundHeard(process: string, key: string, tokens: number, second: number): void {
    this.granted(process, key, -tokens);
    const { announced, fromStore, inAll } = this.countOf(key);
    const known = announced.get(process) ?? 0;
    announced.set(process, Math.max(0, known - tokens));
    if (known >= tokens) return;
    for (const need of [fromStore, inAll]) need.allow(tokens - known, second);
  }

  /** Tokens that a process was granted and has neither used nor given back, if that is told at once. */
  unused(process: string): string | undefined {
    const { name, kind } = this.policy;
    if (kind === 'leased' || kind === 'auto') return undefined;
    for (const [key, { left }] of this.keys) {
      const tokens = left.get(process) ?? 0;
      if (tokens > 0) return `${name} ${kind} ${key}: ${tokens} granted to ${process} for nothing`;
    }
    return undefined;
  }

  /**
   * A bucket has them again from now on. A window has as good as never counted what it takes back,
   * unless it has forgotten the tokens by then and does not know that.
   */
  refundDone(key: string, tokens: number, begun: number, isTold: boolean, second: number): void {
    const count = this.countOf(key);
    const { kind, periodMs } = this.policy;
    const isForgotten = second - begun > (periodMs / 1000) * WINDOW_PART;
    if (kind === 'window' && isForgotten && !isTold) return;
    count.refunding -= tokens;
    count.fromStore.giveBack(tokens, second);
    count.inAll.giveBack(tokens, second);
    count.inWindow.add(-tokens, begun, second);
  }

  /** Says what does not hold, if anything does not. */
  admitted(
    process: string,
    key: string,
    tokens: number,
    source: string,
    begun: number,
    second: number,
  ): string | undefined {
    this.pass();
    const count = this.countOf(key);
    if (source === 'fallback') return this.admittedByShare(process, count, key, tokens, second);
    const left = (count.left.get(process) ?? 0) - tokens;
    count.left.set(process, left);
    if (left < 0) return `${this.policy.name} ${key}: ${-left} more than ${process} was granted`;
    const most = this.burst + this.added + count.refunding;
    const used = this.usedFromStore(count, tokens, begun, second);
    if (used > most + EDGE_TOKENS) return this.exceeds(`${key} from the store`, used, most);
    return this.checkAll(count, key, tokens, begun, second);
  }

  private usedFromStore(count: KeyCount, tokens: number, begun: number, second: number): number {
    const { fromStore, inWindow } = count;
    if (this.policy.kind !== 'window') return fromStore.add(tokens, begun, second);
    return inWindow.add(tokens, begun, second);
  }

  private admittedByShare(
    process: string,
    count: KeyCount,
    key: string,
    tokens: number,
    second: number,
  ): string | undefined {
    if (this.policy.failureMode === 'closed') return `${this.policy.name} ${key}: closed, and open`;
    if (this.policy.kind === 'window') return undefined;
    count.byShare.change(
      this.rate *
        Math.max(
          1,
          this.fleet.parts(() => true),
        ),
      second,
    );
    const used = count.byShare.add(tokens, second, second);
    const most = this.shareDepth + this.joinedDepth + this.added;
    if (used > most + EDGE_TOKENS) return this.exceeds(`${key} by share`, used, most);
    count.untold.pass(process, tokens, second);
    return this.checkAll(count, key, tokens, second, second);
  }

  private checkAll(
    count: KeyCount,
    key: string,
    tokens: number,
    begun: number,
    second: number,
  ): string | undefined {
    if (this.policy.kind === 'window') return undefined;
    const used = count.inAll.add(tokens, begun, second);
    const fromStore = this.burst + this.added + count.refunding;
    // Of late answers: what passed by share, and what flowed in before the store said no
    // (docs/histories.md has the proof).
    const byShare = this.shareDepth + 2 * this.joinedDepth + this.rate * this.latestSeconds;
    const most = fromStore + Math.max(byShare, count.untold.most(this.rate, second));
    return used > most + EDGE_TOKENS ? this.exceeds(`${key} in all`, used, most) : undefined;
  }

  private exceeds(what: string, used: number, most: number): string {
    return `${this.policy.name} ${this.policy.kind} ${what}: ${used.toFixed(2)} of ${most.toFixed(2)}`;
  }

  /** The processes have been those that there are. */
  pass(): void {
    const depth = this.fleet.alive.reduce((sum, process) => sum + this.depthOf(process), 0);
    this.shareDepth = Math.max(this.shareDepth, depth);
  }

  private depthOf({ nodes }: ProcessView): number {
    return Math.max(this.maxCost, Math.floor(this.burst / nodes));
  }

  private countOf(key: string): KeyCount {
    let count = this.keys.get(key);
    if (count === undefined) {
      const need = (): NeededDepth => new NeededDepth(this.rate);
      const inAll = need();
      const inWindow = new SpanSum((this.policy.periodMs / 1000) * WINDOW_PART - EDGE_TOKENS);
      count = {
        ...{ fromStore: need(), byShare: need(), inAll, inWindow },
        ...{ untold: new Untold(inAll), answeredAt: new Map<string, number>() },
        refunding: 0,
        announced: new Map(),
        left: new Map(),
      };
      this.keys.set(key, count);
    }
    return count;
  }
}
