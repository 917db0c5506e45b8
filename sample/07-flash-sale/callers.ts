import { connect, type Socket } from 'node:net';
import { merchantOf, SHARES, TIERS, type Tier } from './merchants.js';
import { CAPACITY } from './shop-process.js';

/** A caller has gone after this. */
const PATIENCE_MS = 2000;
/** An answer is worth something until then. */
export const IN_TIME_MS = 250;
const EVERY_MS = 5;
/** How much the load changes in a second, in parts of the capacity. */
const RAMP = 4;
const PRODUCTS = 1000;
/** The product that everybody wants. */
export const HOT_PRODUCT = '42';
const HOT_SHARE = 0.5;
const SECONDS = 60;
/** As the load balancer before a shop has them, for all of its callers. */
const CONNECTIONS = 600;

/** What became of requests: each is one of these. */
export interface Fates {
  /** Answered within 250 ms. */
  inTime: number;
  /** Answered, but later. */
  late: number;
  /** 503, or 429. */
  refused: number;
  /** Nobody waited any longer. */
  gaveUp: number;
}

export type FatesByTier = Readonly<Record<Tier, Fates>>;

interface Second {
  readonly at: number;
  readonly byTier: FatesByTier;
  /** Of answers in time and late ones. */
  readonly tookMs: number[];
}

interface Caller {
  readonly tier: Tier;
  readonly product: string;
  readonly sinceMs: number;
}

/** Callers that come by chance and not in turn: nobody waits for another's answer before asking. */
export class Callers {
  /** What they want, and what they do by now, in parts of the capacity. */
  private wanted = 0;
  private factor = 0;
  private due = 0;
  private movedAt = performance.now();
  private seconds: Second[] = [];
  /** The one that was used longest ago first. */
  private readonly idle: Socket[] = [];
  /** Callers for whom no connection is free. */
  private readonly waiting: Caller[] = [];
  private readonly sockets = new Set<Socket>();
  private readonly port: number;
  private timer: NodeJS.Timeout | undefined;

  constructor(url: string) {
    this.port = Number(new URL(url).port);
  }

  begin(): void {
    for (let i = 0; i < CONNECTIONS; i++) this.open();
    this.timer = setInterval(() => this.move(), EVERY_MS);
  }

  end(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    for (const socket of this.sockets) socket.destroy();
  }

  want(factor: number): void {
    this.wanted = factor;
  }

  get load(): { readonly wanted: number; readonly now: number } {
    return { wanted: this.wanted, now: this.factor };
  }

  /** Sums of the last seconds that are over. */
  last(count: number): { readonly byTier: FatesByTier; readonly tookMs: readonly number[] } {
    const now = secondOf(performance.now());
    const those = this.seconds.filter(({ at }) => at < now && at >= now - count);
    const byTier = noFates();
    for (const one of those) {
      for (const tier of TIERS) {
        for (const fate of FATES) byTier[tier][fate] += one.byTier[tier][fate];
      }
    }
    return { byTier, tookMs: those.flatMap(({ tookMs }) => tookMs).sort((a, b) => a - b) };
  }

  /** Each of the last seconds that are over, the newest last. */
  history(): Fates[] {
    const now = secondOf(performance.now());
    const known = new Map(this.seconds.map((one) => [one.at, one]));
    return Array.from({ length: SECONDS }, (_, i) => {
      const sums = { inTime: 0, late: 0, refused: 0, gaveUp: 0 };
      const { byTier } = known.get(now - SECONDS + i) ?? {};
      if (byTier === undefined) return sums;
      for (const tier of TIERS) for (const fate of FATES) sums[fate] += byTier[tier][fate];
      return sums;
    });
  }

  private move(): void {
    const now = performance.now();
    const passed = Math.min(now - this.movedAt, 1000) / 1000;
    this.movedAt = now;
    const most = RAMP * passed;
    this.factor += Math.max(-most, Math.min(most, this.wanted - this.factor));
    this.due += poisson(this.factor * CAPACITY * passed);
    for (; this.due >= 1; this.due--) this.call();
    this.leave(now);
  }

  private call(): void {
    const product =
      Math.random() < HOT_SHARE ? HOT_PRODUCT : String(Math.floor(Math.random() * PRODUCTS));
    const caller: Caller = { tier: byChance(), product, sinceMs: performance.now() };
    const socket = this.idle.shift();
    if (socket === undefined) this.waiting.push(caller);
    else this.ask(socket, caller);
  }

  private ask(socket: Socket, caller: Caller): void {
    const { tier, product, sinceMs } = caller;
    const leftMs = sinceMs + PATIENCE_MS - performance.now();
    // Who gives up hangs up, and the answer has nobody to go to.
    const timer = setTimeout(() => socket.destroy(), leftMs);
    const onClose = (): void => this.count(caller, 'gaveUp');
    socket.once('close', onClose);
    // Answers are short enough to come in one piece.
    socket.once('data', (chunk: Buffer) => {
      clearTimeout(timer);
      socket.off('close', onClose);
      const isServed = chunk.toString('latin1', 9, 12) === '200';
      const isInTime = performance.now() - sinceMs <= IN_TIME_MS;
      this.count(caller, isServed ? (isInTime ? 'inTime' : 'late') : 'refused');
      this.release(socket);
    });
    socket.write(
      `GET /products/${product} HTTP/1.1\r\nHost: shop\r\nx-merchant: ${merchantOf(tier)}\r\n\r\n`,
    );
  }

  private release(socket: Socket): void {
    this.leave(performance.now());
    const next = this.waiting.shift();
    if (next === undefined) this.idle.push(socket);
    else this.ask(socket, next);
  }

  /** Whoever has waited for a connection for too long. */
  private leave(now: number): void {
    while (this.waiting.length > 0 && now - this.waiting[0]!.sinceMs >= PATIENCE_MS) {
      this.count(this.waiting.shift()!, 'gaveUp');
    }
  }

  private open(): void {
    const socket = connect(this.port, '127.0.0.1');
    this.sockets.add(socket);
    socket.once('connect', () => this.release(socket));
    socket.on('error', () => {});
    socket.once('close', () => {
      this.sockets.delete(socket);
      const place = this.idle.indexOf(socket);
      if (place >= 0) this.idle.splice(place, 1);
      if (this.timer !== undefined) this.open();
    });
  }

  private count({ tier, sinceMs }: Caller, fate: keyof Fates): void {
    const second = this.second();
    second.byTier[tier][fate]++;
    if (fate === 'inTime' || fate === 'late') second.tookMs.push(performance.now() - sinceMs);
  }

  private second(): Second {
    const at = secondOf(performance.now());
    const last = this.seconds.at(-1);
    if (last?.at === at) return last;
    const next = { at, byTier: noFates(), tookMs: [] };
    this.seconds.push(next);
    if (this.seconds.length > SECONDS + 1) this.seconds.shift();
    return next;
  }
}

const FATES = ['inTime', 'late', 'refused', 'gaveUp'] as const;

function noFates(): FatesByTier {
  const none = (): Fates => ({ inTime: 0, late: 0, refused: 0, gaveUp: 0 });
  return { S: none(), A: none(), B: none(), C: none() };
}

const secondOf = (ms: number): number => Math.floor(ms / 1000);

/** How many come in a time in which so many come on the average. */
function poisson(mean: number): number {
  let count = 0;
  for (let left = Math.random(), part = Math.exp(-mean); left > part && count < 1000; count++) {
    left -= part;
    part *= mean / (count + 1);
  }
  return count;
}

function byChance(): Tier {
  let draw = Math.random();
  for (const tier of TIERS) {
    if (draw < SHARES[tier]) return tier;
    draw -= SHARES[tier];
  }
  return 'C';
}
