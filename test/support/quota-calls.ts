import { QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import { compileQuota, type QuotaFigures } from '../../lib/algorithms/quota/quota-limits.js';
import {
  type AppCall,
  type AppReply,
  type QuotaCall,
  type QuotaReply,
} from '../../lib/algorithms/quota/quota-protocol.js';
import { START_MICROS } from './quota-fleet.js';

/** The call about app 0, with defaults for the rest; `count` requests of `cost` wait. */
export type Ask = Partial<Omit<AppCall, 'needs'>> & { cost?: number; count?: number };

export function askFor({ cost = 1, count = 0, ...others }: Ask): AppCall {
  const needs = count > 0 ? [{ cost, count }] : [];
  return { app: 0, used: 0, returned: 0, demand: 0, want: 0, ...others, needs };
}

/** The first call of node `a`, where nothing else is said. */
export function ask(asked: Ask, others: Partial<QuotaCall> = {}): QuotaCall {
  return {
    node: 'a',
    incarnation: '1',
    seq: 1,
    seenEpoch: 0,
    seenSequence: 0,
    leaving: false,
    apps: [askFor(asked)],
    ...others,
  };
}

/** A ledger and nodes that call it; instants are milliseconds since it was made. */
export class Till {
  readonly ledger: QuotaLedger;
  private readonly seqs = new Map<string, number>();

  constructor(figures: QuotaFigures) {
    this.ledger = new QuotaLedger(compileQuota(figures));
  }

  /** A call of a node about some apps; each call has the next number. */
  call(atMs: number, node: string, ...asked: Ask[]): QuotaReply {
    const seq = (this.seqs.get(node) ?? 0) + 1;
    this.seqs.set(node, seq);
    const call = ask({}, { node, seq, apps: asked.map(askFor) });
    return this.ledger.settle(START_MICROS + Math.round(atMs * 1000), call);
  }

  leave(atMs: number, node: string, ...asked: Ask[]): void {
    const seq = (this.seqs.get(node) ?? 0) + 1;
    const call = ask({}, { node, seq, leaving: true, apps: asked.map(askFor) });
    this.ledger.settle(START_MICROS + atMs * 1000, call);
  }

  /** The answer to node `a` about one app. */
  ask(atMs: number, asked: Ask): AppReply {
    return this.call(atMs, 'a', asked).apps[0]!;
  }

  /** The number that passes of so many requests of node `a`. */
  need(atMs: number, count: number, asked: Ask = {}): number {
    return this.ask(atMs, { ...asked, count }).needs[0]!;
  }

  /** The tokens that node `a` gets of those it wants in stock. */
  want(atMs: number, want: number, asked: Ask = {}): number {
    return this.ask(atMs, { ...asked, want }).granted;
  }
}
