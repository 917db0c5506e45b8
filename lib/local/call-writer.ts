import {
  type AppCall,
  type QuotaCall,
  type QuotaReply,
} from '../algorithms/quota/quota-protocol.js';
import { type AppTokens, type AppWaiter } from './app-tokens.js';
import { type StockPlan } from './stock-plan.js';

export interface NodeIdentity {
  readonly nodeId: string;
  readonly incarnation: string;
}

/** A call on its way, and who waits for its answer. */
export interface Flight {
  readonly call: QuotaCall;
  readonly sentAt: number;
  readonly asked: ReadonlyMap<number, readonly AppWaiter[]>;
}

/** What was consumed by whom is for people: it need not travel with every call. */
const USAGE_EVERY_MICROS = 1_000_000;

/** Writes a node's calls, and knows what it has heard of the store so far. */
export class CallWriter {
  epoch = 0;
  private seq = 0;
  private sequence = 0;
  /** On the store's clock: until when the lease lasts that the last reply has prolonged. */
  private leasedUntil = -Infinity;
  private usageToldAt = 0;

  constructor(
    private readonly identity: NodeIdentity,
    private readonly tanks: readonly AppTokens[],
    private readonly plan: StockPlan,
  ) {}

  /** Everything there is to say: reports, what goes back, who waits, and what is wanted. */
  write(now: number, paceMicros: number): Flight {
    const asked = new Map<number, AppWaiter[]>();
    const apps: AppCall[] = [];
    const tellsUsage = this.tellsUsageAt(now);
    if (tellsUsage) this.usageToldAt = now;
    this.plan.renew();
    for (const tank of this.tanks) {
      const waiters = tank.takeWaiters();
      const surplus = this.plan.surplus(tank, now);
      const mayWant = surplus === 0 && (tank.lastShortage === 'none' || now >= tank.askAt);
      const want = mayWant ? this.plan.want(tank, now) : 0;
      if (mayWant) tank.askAt = now + paceMicros;
      // What the cluster is short of is there again any moment; an app that is at its limit stays there.
      const isHeldBack = !mayWant && surplus === 0 && waiters.length === 0;
      tank.isHeldBack = isHeldBack && tank.lastShortage === 'app';
      const call = tank.write(waiters, surplus, want, tellsUsage, now);
      const isIdle = saysNothing(call);
      // The store is told once that there is nothing more to tell, and stops counting this node.
      if (isIdle && !tank.isKnown) continue;
      tank.isKnown = !isIdle;
      asked.set(tank.index, waiters);
      apps.push(call);
    }
    return { call: this.number(apps, false), sentAt: now, asked };
  }

  /** Whether a call at that instant would tell what was consumed. */
  tellsUsageAt(now: number): boolean {
    return now - this.usageToldAt >= USAGE_EVERY_MICROS;
  }

  /** The last call: all goes back. */
  writeLast(now: number): QuotaCall {
    const apps = this.tanks.map((tank) => {
      return { ...tank.write([], tank.tokens, 0, true, now), demand: 0 };
    });
    return this.number(apps, true);
  }

  /** Takes note of a reply; false if what the node held before is void. */
  hear({ epoch, sequence, nowMicros, leaseTtlMicros }: QuotaReply): boolean {
    const isSameState = this.epoch === 0 || epoch === this.epoch;
    const hasLasted = nowMicros < this.leasedUntil;
    this.epoch = epoch;
    this.sequence = sequence;
    this.leasedUntil = nowMicros + leaseTtlMicros;
    return isSameState && hasLasted;
  }

  private number(apps: readonly AppCall[], leaving: boolean): QuotaCall {
    const { nodeId: node, incarnation } = this.identity;
    const seq = ++this.seq;
    const { epoch: seenEpoch, sequence: seenSequence } = this;
    return { node, incarnation, seq, seenEpoch, seenSequence, leaving, apps };
  }
}

function saysNothing(call: AppCall): boolean {
  const { used, returned, refunded = 0, late, owed = 0, demand, needs, want, consumption } = call;
  const told = used + returned + refunded + (late?.tokens ?? 0) + owed + (consumption?.count ?? 0);
  return told + demand + needs.length + want === 0;
}
