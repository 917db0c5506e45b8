import { QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import {
  compileQuota,
  numbered,
  type QuotaFigures,
  type QuotaLimits,
} from '../../lib/algorithms/quota/quota-limits.js';
import {
  type AppCall,
  type QuotaCall,
  type QuotaReply,
} from '../../lib/algorithms/quota/quota-protocol.js';
import { leaseName } from '../../lib/algorithms/quota/quota-state.js';
import { QuotaBooks, type Movement } from './quota-books.js';

/** An epoch instant, because that is what Redis counts from. */
export const START_MICROS = 1_700_000_000_000_000;

export type Action =
  | 'call'
  | 'call, reply lost'
  | 'call, request lost'
  | 'call, doubled'
  | 'spend'
  | 'put aside'
  | 'repeat an old call'
  | 'give up'
  | 'leave'
  | 'crash';

/** One step of a history: time passes, then one node does something. */
export interface FleetStep {
  readonly gapMicros: number;
  readonly node: number;
  readonly action: Action;
  readonly app: number;
  /** Tokens to want, to spend or to put aside. */
  readonly tokens: number;
  readonly cost: number;
  readonly count: number;
  readonly demand: number;
}

/**
 * Nodes that keep to the protocol, on a virtual clock, with everything that may happen to them.
 *
 * A node may spend the tokens that it holds until one lease time after it *sent* the call; a call without an
 * answer is sent again as it was, or the node gives up and goes on as another incarnation; a reply
 * from a new epoch, or from later than its lease lasted, tells it to forget what it held before.
 */
export class QuotaFleet {
  limits: QuotaLimits;
  readonly ledger: QuotaLedger;
  readonly books: QuotaBooks;
  readonly admissions: Movement[] = [];
  nowMicros = START_MICROS;
  /** How far the store's clock is from that of the nodes. */
  storeOffsetMicros = 0;
  private names: readonly string[];
  private readonly nodes = new Map<number, FleetNode>();
  private born = 0;

  constructor(figures: QuotaFigures) {
    this.limits = compileQuota(figures);
    this.ledger = new QuotaLedger(this.limits);
    this.books = new QuotaBooks(this.ledger, this.limits);
    this.names = figures.apps.map(({ app }) => app);
  }

  /** Other figures from now on; calls and leases of before are still about. */
  change(figures: QuotaFigures): void {
    this.names = numbered(
      this.names,
      figures.apps.map(({ app }) => app),
    );
    this.limits = compileQuota(figures, this.names, this.limits.revision + 1);
    this.books.change(this.nowMicros + this.storeOffsetMicros, this.limits);
    for (const node of this.nodes.values()) node.grow();
  }

  run(history: readonly FleetStep[]): this {
    for (const step of history) this.step(step);
    return this;
  }

  step(step: FleetStep): void {
    this.nowMicros += step.gapMicros;
    const node = this.node(step.node);
    switch (step.action) {
      case 'call':
      case 'call, reply lost':
      case 'call, request lost':
      case 'call, doubled':
        return node.call(step);
      case 'spend':
        return node.spend(step.app, step.tokens);
      case 'put aside':
        return node.putAside(step.app, step.tokens);
      case 'repeat an old call':
        return node.repeat();
      case 'leave':
        node.leave();
        return this.replace(step.node, 0, 0);
      case 'give up':
        return this.replace(step.node, node.seenEpoch, node.seenSequence);
      case 'crash':
        return this.replace(step.node, 0, 0);
    }
  }

  settle(call: QuotaCall): QuotaReply {
    return this.books.settle(this.nowMicros + this.storeOffsetMicros, call);
  }

  admit(app: number, tokens: number): void {
    if (tokens > 0) this.admissions.push({ atMicros: this.nowMicros, app, tokens });
  }

  node(index: number): FleetNode {
    if (!this.nodes.has(index)) this.replace(index, 0, 0);
    return this.nodes.get(index)!;
  }

  private replace(index: number, seenEpoch: number, seenSequence: number): void {
    const node = new FleetNode(this, `n${index}`, `i${this.born++}`, seenEpoch, seenSequence);
    this.nodes.set(index, node);
  }
}

interface Unanswered {
  readonly call: QuotaCall;
  readonly sentMicros: number;
}

export class FleetNode {
  private readonly held: number[];
  private readonly spent: number[];
  private readonly aside: number[];
  private readonly serves = new Set<number>();
  private readonly demands: number[];
  private seq = 0;
  private expiresMicros = -Infinity;
  private leasedUntilMicros = -Infinity;
  private unanswered: Unanswered | undefined;
  private lastCall: QuotaCall | undefined;

  constructor(
    private readonly fleet: QuotaFleet,
    private readonly name: string,
    private readonly incarnation: string,
    public seenEpoch: number,
    public seenSequence: number,
  ) {
    [this.held, this.spent, this.aside, this.demands] = [[], [], [], []];
    this.grow();
  }

  /** There may be apps that nobody knew of when the node began. */
  grow(): void {
    for (const account of [this.held, this.spent, this.aside, this.demands]) {
      while (account.length < this.fleet.limits.apps.length) account.push(0);
    }
  }

  call(step: FleetStep): void {
    const { fleet } = this;
    const isRetry = this.unanswered !== undefined;
    const { call, sentMicros } = this.unanswered ?? this.write(step);
    this.unanswered = { call, sentMicros };
    this.lastCall = call;
    if (step.action === 'call, request lost') return;
    const reply = fleet.settle(call);
    if (step.action === 'call, reply lost') return;
    if (step.action === 'call, doubled') fleet.settle(call);
    this.unanswered = undefined;
    this.hear(call, reply, sentMicros, isRetry);
  }

  spend(app: number, tokens: number): void {
    if (this.fleet.nowMicros >= this.expiresMicros) return;
    const spent = Math.min(tokens, this.held[app]!);
    this.held[app]! -= spent;
    this.spent[app]! += spent;
    this.fleet.admit(app, spent);
  }

  /** From then on the tokens are not spent; they go back with the next call. */
  putAside(app: number, tokens: number): void {
    const aside = Math.min(tokens, this.held[app]!);
    this.held[app]! -= aside;
    this.aside[app]! += aside;
  }

  /** The network delivers a call of the past once more; nobody waits for the reply. */
  repeat(): void {
    const state = this.fleet.ledger.peek();
    // A call that the store has no lease for any more is a new one to it.
    if (this.lastCall === undefined || this.unanswered !== undefined) return;
    if (!state?.leases.has(leaseName(this.lastCall))) return;
    this.fleet.settle({ ...this.lastCall, seq: Math.max(1, this.lastCall.seq - 1) });
  }

  leave(): void {
    if (this.unanswered !== undefined || this.seq === 0) return;
    for (const app of this.serves) this.putAside(app, this.held[app]!);
    const { call } = this.write(undefined);
    this.fleet.settle({ ...call, leaving: true });
  }

  private write(step: FleetStep | undefined): Unanswered {
    const { nowMicros } = this.fleet;
    if (nowMicros >= this.expiresMicros) {
      for (const app of this.serves) this.putAside(app, this.held[app]!);
    }
    if (step !== undefined) {
      this.serves.add(step.app);
      this.demands[step.app] = step.demand;
    }
    const apps: AppCall[] = [...this.serves].map((app) => ({
      app,
      used: take(this.spent, app),
      returned: take(this.aside, app),
      demand: this.demands[app]!,
      needs: app === step?.app && step.count > 0 ? [{ cost: step.cost, count: step.count }] : [],
      want: app === step?.app ? step.tokens : 0,
    }));
    const { name: node, incarnation, seenEpoch, seenSequence } = this;
    const seq = ++this.seq;
    const call = { node, incarnation, seq, seenEpoch, seenSequence, leaving: false, apps };
    return { call, sentMicros: nowMicros };
  }

  private hear(call: QuotaCall, reply: QuotaReply, sentMicros: number, isRetry: boolean): void {
    const { fleet } = this;
    const lasted = reply.nowMicros < this.leasedUntilMicros;
    if (!lasted || reply.epoch !== this.seenEpoch) this.forget();
    for (const [turn, { app, granted, needs }] of reply.apps.entries()) {
      this.held[app]! += granted;
      const passed = call.apps[turn]!.needs.reduce((n, { cost }, i) => n + cost * needs[i]!, 0);
      // Callers that waited for the first reply have given up when a later one comes.
      if (!isRetry) fleet.admit(app, passed);
    }
    this.expiresMicros = sentMicros + reply.leaseTtlMicros;
    this.leasedUntilMicros = reply.nowMicros + reply.leaseTtlMicros;
    this.seenEpoch = reply.epoch;
    this.seenSequence = reply.sequence;
  }

  private forget(): void {
    this.held.fill(0);
    this.spent.fill(0);
    this.aside.fill(0);
  }
}

function take(amounts: number[], app: number): number {
  const amount = amounts[app]!;
  amounts[app] = 0;
  return amount;
}
