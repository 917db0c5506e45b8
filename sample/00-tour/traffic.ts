import { connect, type Socket } from 'node:net';

/** Requests a second when nothing happens. */
const STEADY = { checkout: 115, search: 88, reports: 38, product: 30, login: 6 };
export type Kind = keyof typeof STEADY;
const KINDS = Object.keys(STEADY) as Kind[];
const PATHS: Readonly<Record<Kind, string>> = {
  checkout: '/checkout',
  search: '/search?q=lamp',
  reports: '/reports',
  product: '/products/',
  login: '/login',
};
const TURN_MS = 25;
/** So long it takes until all are there: nodes that have just started are slow. */
const RISE_MS = 3000;
/**
 * A turn that comes later than this makes up for no more: callers do not come all at once because this process was busy, and
 * a node would take four requests of an app at once for a rise, and tokens for it that the other nodes then miss.
 */
const MOST_SECONDS = 0.075;
/** Callers are as many as these; a few of them are busier than they may be. */
const CALLERS = 400;
const BUSY_CALLERS = 4;
/** Connections to each node for each kind: an answer that takes long holds up those behind it on its own alone. */
const LINES = 4;

/**
 * Asks the nodes in turn, at a steady rate with slow waves; the same every time. Requests are written as they are and their
 * answers thrown away: a client that read them would cost this process as much as the three nodes.
 */
export class Traffic {
  private readonly lines = new Map<string, Socket>();
  private readonly raised = new Map<Kind, { readonly factor: number }>();
  private readonly owed = new Map<Kind, number>();
  private seed = 7;
  private turns = 0;
  private startedMs = 0;
  private lastMs = 0;
  private timer: NodeJS.Timeout | undefined;
  private addresses: readonly string[] = [];

  start(addresses: readonly string[]): void {
    this.addresses = addresses;
    this.startedMs = this.lastMs = performance.now();
    this.timer = setInterval(() => this.turn(), TURN_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    for (const line of this.lines.values()) line.destroy();
  }

  /** So many times as much of these, for a while: what is asked for last holds, and to its own end. */
  raise(kinds: readonly Kind[], factor: number, seconds: number): void {
    const raise = { factor };
    for (const kind of kinds) this.raised.set(kind, raise);
    setTimeout(() => {
      for (const kind of kinds) if (this.raised.get(kind) === raise) this.raised.delete(kind);
    }, seconds * 1000).unref();
  }

  private turn(): void {
    const now = performance.now();
    const seconds = Math.min(MOST_SECONDS, (now - this.lastMs) / 1000);
    this.lastMs = now;
    const sinceMs = now - this.startedMs;
    const wave = Math.min(1, sinceMs / RISE_MS) * (1 + 0.06 * Math.sin(sinceMs / 9000));
    for (const kind of KINDS) {
      const perSecond = STEADY[kind] * wave * (this.raised.get(kind)?.factor ?? 1);
      let owed = (this.owed.get(kind) ?? 0) + perSecond * seconds;
      for (; owed >= 1; owed--) this.ask(kind);
      this.owed.set(kind, owed);
    }
  }

  private ask(kind: Kind): void {
    const turn = this.turns++;
    const address = this.addresses[turn % this.addresses.length]!;
    const path = kind === 'product' ? `${PATHS.product}${this.below(40)}` : PATHS[kind];
    const what = kind === 'login' ? `POST ${path}` : `GET ${path}`;
    this.line(address, `${kind} ${Math.floor(turn / this.addresses.length) % LINES}`).write(
      `${what} HTTP/1.1\r\nhost: shop\r\nx-client: ${this.caller(kind)}\r\ncontent-length: 0\r\n\r\n`,
    );
  }

  /** Opened when it is first needed, and again when a node has closed it. */
  private line(address: string, name: string): Socket {
    const known = this.lines.get(`${address} ${name}`);
    if (known?.writable === true) return known;
    const { hostname, port } = new URL(address);
    const line = connect(Number(port), hostname);
    // A node that is about to end does not answer.
    line.on('error', () => undefined).resume();
    this.lines.set(`${address} ${name}`, line);
    return line;
  }

  /** One login in six is of somebody who tries again and again. */
  private caller(kind: Kind): string {
    const isBusy = kind === 'login' && this.below(6) === 0;
    return `client-${isBusy ? this.below(BUSY_CALLERS) : this.below(CALLERS)}`;
  }

  private below(most: number): number {
    this.seed = (this.seed * 16807) % 2147483647;
    return this.seed % most;
  }
}
