import { connect, type Socket } from 'node:net';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';

export type Tier = 'S' | 'A' | 'B' | 'C';
export const TIERS: readonly Tier[] = ['S', 'A', 'B', 'C'];
/** Parts of the traffic. */
const SHARES = [0.05, 0.15, 0.3, 0.5];
/** A caller gives up after this. */
const PATIENCE_MS = 2000;
export const IN_TIME_MS = 250;

export interface Offered {
  /** Requests a second, whatever becomes of those before. */
  readonly perSecond: number;
  readonly seconds: number;
  /** Connections that were open before; 0 for a new one each time. */
  readonly connections: number;
}

/** Answers of one span, as callers saw them. */
export interface Outcome {
  readonly sent: number;
  readonly inTime: number;
  readonly unanswered: number;
  readonly latencies: readonly number[];
  readonly servedByTier: Readonly<Record<Tier, number>>;
}

interface Caller {
  readonly tier: Tier;
  readonly sentAt: number;
  readonly counts: boolean;
  isOver: boolean;
}

/** Callers that come by chance and not in turn: nobody waits for another's answer before asking. */
export class OfferedLoad {
  private readonly idle: Socket[] = [];
  private readonly waiting: Caller[] = [];
  private readonly all: Caller[] = [];
  private readonly served: { readonly caller: Caller; readonly ms: number }[] = [];
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly url: URL,
    private readonly isNew: boolean,
  ) {}

  static async on(url: string, connections: number): Promise<OfferedLoad> {
    const load = new OfferedLoad(new URL(url), connections === 0);
    for (let left = connections; left > 0; left -= 50) {
      await Promise.all(Array.from({ length: Math.min(50, left) }, () => load.open()));
    }
    return load;
  }

  /** Sends for so long; what was sent in the first second does not count. */
  async send({ perSecond, seconds }: Offered): Promise<Outcome> {
    const begun = performance.now();
    const end = begun + (seconds + 1) * 1000;
    let next = begun;
    while (performance.now() < end) {
      const now = performance.now();
      for (; next <= now; next += (-Math.log(1 - Math.random()) * 1000) / perSecond) {
        this.call({
          tier: tierByChance(),
          sentAt: next,
          counts: next >= begun + 1000,
          isOver: false,
        });
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    await new Promise((resolve) => setTimeout(resolve, PATIENCE_MS + 100));
    return this.outcome();
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  private call(caller: Caller): void {
    this.all.push(caller);
    if (this.isNew) return void this.open(caller);
    const socket = this.idle.pop();
    if (socket === undefined) this.waiting.push(caller);
    else this.ask(socket, caller);
  }

  private async open(caller?: Caller): Promise<void> {
    const socket = connect(Number(this.url.port), this.url.hostname);
    this.sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => this.sockets.delete(socket));
    if (caller !== undefined) return this.ask(socket, caller);
    await once(socket, 'connect');
    this.idle.push(socket);
  }

  private ask(socket: Socket, caller: Caller): void {
    const { tier, sentAt } = caller;
    const connection = this.isNew ? 'Connection: close\r\n' : '';
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\nx-tier: ${tier}\r\n${connection}\r\n`);
    const timer = setTimeout(() => socket.destroy(), sentAt + PATIENCE_MS - performance.now());
    const end = (status: string): void => {
      if (caller.isOver) return;
      caller.isOver = true;
      clearTimeout(timer);
      socket.off('data', onData).off('close', onClose);
      const ms = performance.now() - sentAt;
      if (status === '200' && ms <= PATIENCE_MS) this.served.push({ caller, ms });
      if (status === '') this.unanswered.push(caller);
      this.release(socket, status !== '');
    };
    const onData = (chunk: Buffer): void => end(chunk.toString('latin1', 9, 12));
    const onClose = (): void => end('');
    socket.on('data', onData).on('close', onClose);
  }

  private readonly unanswered: Caller[] = [];

  private release(socket: Socket, isUsable: boolean): void {
    if (this.isNew) return void socket.destroy();
    if (!isUsable) return void this.open().catch(() => {});
    let next = this.waiting.shift();
    while (next !== undefined && performance.now() - next.sentAt > PATIENCE_MS) {
      this.unanswered.push(next);
      next = this.waiting.shift();
    }
    if (next === undefined) this.idle.push(socket);
    else this.ask(socket, next);
  }

  private outcome(): Outcome {
    const sent = this.all.filter(({ counts }) => counts);
    const served = this.served.filter(({ caller }) => caller.counts);
    const inTime = served.filter(({ ms }) => ms <= IN_TIME_MS);
    const partOf = (tier: Tier): number =>
      inTime.filter(({ caller }) => caller.tier === tier).length /
      Math.max(1, sent.filter((caller) => caller.tier === tier).length);
    const left = this.unanswered.filter(({ counts }) => counts).length;
    const neverSent = this.waiting.filter(({ counts }) => counts).length;
    return {
      sent: sent.length,
      inTime: inTime.length,
      unanswered: left + neverSent,
      latencies: served.map(({ ms }) => ms).sort((a, b) => a - b),
      servedByTier: { S: partOf('S'), A: partOf('A'), B: partOf('B'), C: partOf('C') },
    };
  }
}

function tierByChance(): Tier {
  let draw = Math.random();
  for (const [place, share] of SHARES.entries()) {
    if (draw < share) return TIERS[place]!;
    draw -= share;
  }
  return 'C';
}
