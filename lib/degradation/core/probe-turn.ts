import { type ProbeLease } from '../../stores/probe-lease.js';

/**
 * Whether it is this node's turn to probe. The lease may answer later: then so does the turn. A lease
 * that fails or does not reply for the time of a turn does not keep a resource ill for ever.
 */
export class ProbeTurn {
  private heldUntil = -Infinity;
  private askedUntil = -Infinity;
  private asks = 0;
  refused = 0;

  constructor(
    private readonly resource: string,
    private readonly lease: ProbeLease,
    /** Another node has the turn. */
    private readonly onRefused: () => void,
  ) {}

  /** True if a probe may begin now. Else the lease has been requested, and the next look may find it held. */
  isOurs(now: number, leaseMs: number): boolean {
    if (now < this.heldUntil) return true;
    if (now < this.askedUntil) return false;
    if (this.askedUntil !== -Infinity) return this.take(now, leaseMs);
    return this.ask(now, leaseMs);
  }

  /** The probe is over. */
  done(): void {
    this.asks++;
    const isHeld = this.heldUntil !== -Infinity;
    this.heldUntil = this.askedUntil = -Infinity;
    if (isHeld) this.release();
  }

  private ask(now: number, leaseMs: number): boolean {
    // A turn is begun within one lease and lasts for another at most.
    const held = this.tryHold(leaseMs * 2);
    if (held === true) return this.take(now, leaseMs);
    this.askedUntil = now + leaseMs * 1000;
    const ask = ++this.asks;
    if (held === false) this.hear(ask, false, now, leaseMs);
    else void held.then((isHeld) => this.hear(ask, isHeld, now, leaseMs));
    return false;
  }

  private tryHold(ttlMs: number): boolean | Promise<boolean> {
    try {
      const held = this.lease.tryHold(this.resource, ttlMs);
      return typeof held === 'boolean' ? held : held.catch(() => true);
    } catch {
      return true;
    }
  }

  private hear(ask: number, isHeld: boolean, askedAt: number, leaseMs: number): void {
    if (ask !== this.asks) {
      // The turn went by in the meantime.
      if (isHeld && this.heldUntil === -Infinity) this.release();
      return;
    }
    this.askedUntil = -Infinity;
    if (isHeld) return void this.take(askedAt, leaseMs);
    this.refused++;
    this.onRefused();
  }

  private take(now: number, leaseMs: number): true {
    this.asks++;
    this.askedUntil = -Infinity;
    this.heldUntil = now + leaseMs * 1000;
    return true;
  }

  private release(): void {
    try {
      this.lease.release(this.resource);
    } catch {
      // It ends by itself.
    }
  }
}
