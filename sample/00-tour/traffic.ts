import { Agent, request } from 'node:http';

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
/** Callers are as many as these; a few of them are busier than they may be. */
const CALLERS = 400;
const BUSY_CALLERS = 4;

/** Asks the nodes in turn, at a steady rate with slow waves; the same every time. */
export class Traffic {
  private readonly agent = new Agent({ keepAlive: true, maxSockets: 64 });
  private readonly factors = new Map<Kind, number>();
  private readonly owed = new Map<Kind, number>();
  private readonly startedMs = performance.now();
  private seed = 7;
  private turns = 0;
  private lastMs = performance.now();
  private timer: NodeJS.Timeout | undefined;
  private addresses: readonly string[] = [];

  start(addresses: readonly string[]): void {
    this.addresses = addresses;
    this.timer = setInterval(() => this.turn(), TURN_MS);
  }

  stop(): void {
    clearInterval(this.timer);
    this.agent.destroy();
  }

  /** So many times as much of that kind, for a while. */
  raise(kinds: readonly Kind[], factor: number, seconds: number): void {
    for (const kind of kinds) this.factors.set(kind, factor);
    setTimeout(() => {
      for (const kind of kinds) this.factors.delete(kind);
    }, seconds * 1000).unref();
  }

  private turn(): void {
    const now = performance.now();
    const seconds = Math.min(0.25, (now - this.lastMs) / 1000);
    this.lastMs = now;
    const wave = 1 + 0.06 * Math.sin((now - this.startedMs) / 9000);
    for (const kind of KINDS) {
      const perSecond = STEADY[kind] * wave * (this.factors.get(kind) ?? 1);
      let owed = (this.owed.get(kind) ?? 0) + perSecond * seconds;
      for (; owed >= 1; owed--) this.ask(kind);
      this.owed.set(kind, owed);
    }
  }

  private ask(kind: Kind): void {
    const address = this.addresses[this.turns++ % this.addresses.length]!;
    const path = kind === 'product' ? `${PATHS.product}${this.below(40)}` : PATHS[kind];
    const headers = { 'x-client': this.caller(kind) };
    const method = kind === 'login' ? 'POST' : 'GET';
    const asked = request(`${address}${path}`, { agent: this.agent, method, headers }, (answer) =>
      answer.resume(),
    );
    // A node that is about to end does not answer.
    asked.on('error', () => undefined);
    asked.end();
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
