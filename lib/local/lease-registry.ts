import { type Cancel, type Clock } from '../common/clock.js';
import { type RemoteStore, type SharedLimit, type StoreCall } from '../stores/remote-store.js';
import { type LeaseDeps, LimitLeases } from './limit-leases.js';

/** Keys that one limiter holds leases of; further ones are decided by the store. */
const MOST_KEYS = 10_000;
/** Time after which tokens that are not needed go back. */
const SWEEP_MS = 50;

/** The leases of a limiter, by limit, and what they share: the store, room for keys, one timer. */
export class LeaseRegistry implements LeaseDeps {
  private readonly byLimit: LimitLeases[] = [];
  private held = 0;
  private stopSweep: Cancel | undefined;

  constructor(
    private readonly store: Pick<RemoteStore, 'submit' | 'nodes'>,
    private readonly clock: Clock,
    private readonly mostKeys = MOST_KEYS,
  ) {}

  get nodes(): number {
    return this.store.nodes;
  }

  now(): number {
    return this.clock.now();
  }

  /** Opens no lease yet: its keys have to earn theirs. */
  addLimit(limit: SharedLimit, sync: 'auto' | 'leased'): LimitLeases {
    const leases = new LimitLeases(limit, sync, this);
    this.byLimit.push(leases);
    return leases;
  }

  /** The limit has changed or is gone: tokens leased under it go back. */
  retire(leases: LimitLeases): void {
    const index = this.byLimit.indexOf(leases);
    if (index >= 0) this.byLimit.splice(index, 1);
    leases.close(this.clock.now());
  }

  submit(call: StoreCall): void {
    this.store.submit(call);
  }

  /** Room for one more key. The timer runs only while there is a key. */
  claim(): boolean {
    if (this.held >= this.mostKeys) return false;
    this.held++;
    this.stopSweep ??= this.clock.every(SWEEP_MS, () => this.sweep());
    return true;
  }

  release(): void {
    if (--this.held > 0) return;
    this.stopSweep?.();
    this.stopSweep = undefined;
  }

  /** Gives everything back. */
  close(): void {
    const now = this.clock.now();
    for (const leases of this.byLimit) leases.close(now);
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const leases of this.byLimit) leases.sweep(now);
  }
}
