import {
  compileQuota,
  QuotaLedger,
  type QuotaCall,
  type QuotaFigures,
  type QuotaReply,
} from '../../lib/algorithms/quota/index.js';
import { type Cancel, type Clock } from '../../lib/common/clock.js';
import { AppTank } from '../../lib/local/app-tank.js';
import { QuotaNode, type QuotaOutcome } from '../../lib/local/quota-node.js';
import { type QuotaStore } from '../../lib/stores/quota-store.js';

interface Event {
  readonly at: number;
  readonly order: number;
  readonly run: () => void;
}

/** Time that jumps from event to event; a heap of what is to come. */
export class VirtualTime implements Clock {
  micros = 1_000_000;
  private readonly heap: Event[] = [];
  private order = 0;

  now(): number {
    return this.micros;
  }

  epochMs(micros: number): number {
    return micros / 1000;
  }

  after(delayMs: number, run: () => void): Cancel {
    let isCancelled = false;
    this.at(this.micros + delayMs * 1000, () => {
      if (!isCancelled) run();
    });
    return () => (isCancelled = true);
  }

  every(intervalMs: number, run: () => void): Cancel {
    let cancel: Cancel = () => {};
    const again = (): void => {
      run();
      cancel = this.after(intervalMs, again);
    };
    cancel = this.after(intervalMs, again);
    return () => cancel();
  }

  at(at: number, run: () => void): void {
    const { heap } = this;
    const event = { at, order: this.order++, run };
    let i = heap.push(event) - 1;
    while (i > 0) {
      const parent = (i - 1) >> 1;
      if (!isBefore(event, heap[parent]!)) break;
      heap[i] = heap[parent]!;
      i = parent;
    }
    heap[i] = event;
  }

  /** Runs everything up to `until`; promises settle after each event. */
  async runUntil(until: number): Promise<void> {
    for (let next = this.heap[0]; next !== undefined && next.at <= until; next = this.heap[0]) {
      this.pop();
      this.micros = Math.max(this.micros, next.at);
      next.run();
      if (this.needsSettling) {
        this.needsSettling = false;
        await Promise.resolve();
        await Promise.resolve();
        await Promise.resolve();
      }
    }
    this.micros = until;
  }

  /** Set by whoever resolved a promise. */
  needsSettling = false;

  private pop(): void {
    const { heap } = this;
    const last = heap.pop()!;
    if (heap.length === 0) return;
    let i = 0;
    for (;;) {
      let child = 2 * i + 1;
      if (child >= heap.length) break;
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++;
      if (!isBefore(heap[child]!, last)) break;
      heap[i] = heap[child]!;
      i = child;
    }
    heap[i] = last;
  }
}

function isBefore(a: Event, b: Event): boolean {
  return a.at < b.at || (a.at === b.at && a.order < b.order);
}

/** The ledger at the far end of a network: calls and replies take their time. */
export class DistantLedger implements QuotaStore {
  calls = 0;

  constructor(
    readonly ledger: QuotaLedger,
    private readonly time: VirtualTime,
    private readonly oneWayMicros: () => number,
  ) {}

  settle(call: QuotaCall): Promise<QuotaReply> {
    this.calls++;
    return new Promise((resolve) => {
      this.time.at(this.time.now() + this.oneWayMicros(), () => {
        const reply = this.ledger.settle(this.time.now(), call);
        this.time.at(this.time.now() + this.oneWayMicros(), () => {
          this.time.needsSettling = true;
          resolve(reply);
        });
      });
    });
  }
}

export interface FleetNode {
  readonly node: QuotaNode;
  readonly tanks: readonly AppTank[];
}

/** Nodes with the real local tier, on one ledger, in virtual time. */
export class VirtualFleet {
  readonly time = new VirtualTime();
  readonly ledger: QuotaLedger;
  readonly store: DistantLedger;
  readonly nodes: FleetNode[] = [];
  readonly admitted: { at: number; app: number; cost: number }[] = [];
  denied = 0;
  /** When requests came, whatever became of them. */
  readonly offeredAt: number[] = [];

  constructor(
    readonly figures: QuotaFigures,
    private readonly random: () => number,
  ) {
    this.ledger = new QuotaLedger(compileQuota(figures));
    this.store = new DistantLedger(this.ledger, this.time, () => 200 + this.random() * 800);
  }

  join(): FleetNode {
    const { figures } = this;
    const depth = compileQuota(figures).leaseBudget;
    const capacity = figures.cluster?.capacity ?? 1;
    const horizonMs = Math.min(100, Math.max(10, (depth / (4 * capacity)) * 1000));
    const tanks = figures.apps.map(({ app, guaranteed, burst }, index) => {
      return new AppTank(index, app, guaranteed, burst, figures.maxCost);
    });
    const node = new QuotaNode(
      {
        nodeId: `n${this.nodes.length}`,
        incarnation: '1',
        horizonMicros: horizonMs * 1000,
        paceMicros: figures.paceMs * 1000,
        leaseTtlMicros: figures.leaseTtlMs * 1000,
        syncMicros: 100_000,
        batchThreshold: 1000,
        reserveTarget: figures.reserveTarget,
        refillThreshold: 0.2,
        decisionTimeoutMs: 20,
      },
      tanks,
      this.store,
      this.time,
      { mode: () => {}, epoch: () => {}, overload: () => {} },
      this.random,
    );
    const member = { node, tanks };
    this.nodes.push(member);
    return member;
  }

  /** One request; what comes of it is recorded when it is known. */
  request({ node, tanks }: FleetNode, app = 0, cost = 1): void {
    this.offeredAt.push(this.time.now());
    const outcome = node.tryAcquire(tanks[app]!, cost);
    const record = ({ allowed }: QuotaOutcome): void => {
      if (allowed) this.admitted.push({ at: this.time.now(), app, cost });
      else this.denied++;
    };
    if (outcome instanceof Promise) void outcome.then(record);
    else record(outcome);
  }

  /** Poisson arrivals at a rate per second that may change with time. */
  offer(member: FleetNode, rate: (micros: number) => number, until: number, app = 0): void {
    const step = (): void => {
      const perSecond = rate(this.time.now());
      const gap = perSecond > 0 ? (-Math.log(1 - this.random()) / perSecond) * 1e6 : 50_000;
      const at = this.time.now() + gap;
      if (at > until) return;
      this.time.at(at, () => {
        if (perSecond > 0) this.request(member, app);
        step();
      });
    };
    step();
  }
}
