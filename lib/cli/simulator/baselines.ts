import { type AppReply, type QuotaReply } from '../../algorithms/quota/quota-protocol.js';
import { type Contender, type LimiterNode } from './engine/contender.js';
import { type Host } from './engine/host.js';
import { type World } from './engine/world.js';
import { capacityOf, depthOf } from './measure/figures.js';
import { IdealBucket } from './measure/ideal.js';

/** One bucket in the store, asked for every request. While the store is away nothing passes. */
export const CALL_PER_REQUEST: Contender = {
  name: 'call per request',
  start: ({ quota, time }) => {
    const bucket = new IdealBucket(capacityOf(quota.figures), depthOf(quota.figures));
    return (host) => ({
      request: (_, cost) => host.ask(() => bucket.take(cost, time.seconds())).catch(() => false),
      leave: () => Promise.resolve(),
    });
  },
};

/** Each node by itself, with an even part of capacity and burst, as planned beforehand. */
export const FIXED_SPLIT: Contender = {
  name: 'fixed split',
  start: ({ quota, time, plannedNodes }) => {
    const { figures } = quota;
    const rate = capacityOf(figures) / plannedNodes;
    const depth = Math.max(figures.maxCost, depthOf(figures) / plannedNodes);
    return () => {
      const bucket = new IdealBucket(rate, depth);
      return {
        request: (_, cost) => bucket.take(cost, time.seconds()),
        leave: () => Promise.resolve(),
      };
    };
  },
};

/**
 * Leases of one fixed size from the same ledger, without modes: a miss always asks the store, nothing
 * sets a pace, and nothing goes back before its time is over.
 */
export const PLAIN_LEASE: Contender = {
  name: 'plain lease',
  start: (world) => {
    const half = depthOf(world.quota.figures) / 2;
    const size = Math.max(1, Math.ceil(half / world.plannedNodes));
    return (host) => new PlainLeaseNode(world, host, size);
  },
};

/** Other ways to limit, to compare with. */
export const BASELINES: readonly Contender[] = [CALL_PER_REQUEST, FIXED_SPLIT, PLAIN_LEASE];

interface QueuedRequest {
  readonly app: number;
  readonly cost: number;
  answer(allowed: boolean): void;
}

class PlainLeaseNode implements LimiterNode {
  private readonly tokens: number[];
  private readonly used: number[];
  private expiresAt = 0;
  private seq = 0;
  private waiting: QueuedRequest[] = [];
  private isCalling = false;

  constructor(
    private readonly world: World,
    private readonly host: Host,
    private readonly size: number,
  ) {
    this.tokens = world.quota.figures.apps.map(() => 0);
    this.used = this.tokens.map(() => 0);
  }

  request(app: number, cost: number): boolean | Promise<boolean> {
    if (this.host.clock.now() >= this.expiresAt) this.tokens.fill(0);
    if (this.tokens[app]! >= cost) {
      this.tokens[app]! -= cost;
      this.used[app]! += cost;
      return true;
    }
    return new Promise((answer) => {
      this.waiting.push({ app, cost, answer });
      if (!this.isCalling) this.call();
    });
  }

  leave(): Promise<void> {
    return Promise.resolve();
  }

  private call(): void {
    const asked = this.waiting;
    const sentAt = this.host.clock.now();
    this.waiting = [];
    this.isCalling = true;
    this.host.settle(this.toCall(asked)).then(
      (reply) => this.settled(reply, asked, sentAt),
      () => this.failed(asked),
    );
  }

  private toCall(asked: readonly QueuedRequest[]) {
    const apps = this.tokens.map((_, app) => {
      const needs = asked.filter((one) => one.app === app).map(({ cost }) => ({ cost, count: 1 }));
      const call = { app, used: this.used[app]!, returned: 0, demand: 0, needs };
      return { ...call, want: needs.length > 0 ? this.size : 0 };
    });
    this.used.fill(0);
    const { nodeId: node, incarnation } = this.host;
    const seen = { seenEpoch: 0, seenSequence: 0 };
    return { node, incarnation, seq: ++this.seq, ...seen, leaving: false, apps };
  }

  private settled(reply: QuotaReply, asked: readonly QueuedRequest[], sentAt: number): void {
    this.isCalling = false;
    this.expiresAt = sentAt + this.world.quota.figures.leaseTtlMs * 1000;
    for (const app of reply.apps) this.book(app, asked);
    if (this.waiting.length > 0) this.call();
  }

  private book(reply: AppReply, asked: readonly QueuedRequest[]): void {
    this.tokens[reply.app]! += reply.granted;
    const own = asked.filter(({ app }) => app === reply.app);
    for (const [i, one] of own.entries()) one.answer(reply.needs[i] === 1);
  }

  private failed(asked: readonly QueuedRequest[]): void {
    this.isCalling = false;
    const refused = [...asked, ...this.waiting];
    this.waiting = [];
    for (const one of refused) one.answer(false);
  }
}
