import { type Cancel, type Clock } from '../common/clock.js';
import { type LeaseCall, type RemoteStore, type SharedLimit } from '../stores/remote-store.js';
import { LeasedKeys } from './key-leases.js';

/** Keys that one limiter holds leases of; further ones are decided by the store. */
const MOST_KEYS = 10_000;
/** How soon tokens that are not needed go back. */
const SWEEP_MS = 50;

/** What the leased keys of all limits of a limiter share: the store, the room and one timer. */
export class KeyLeases {
  private readonly tables: LeasedKeys[] = [];
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

  open(limit: SharedLimit, sync: 'auto' | 'leased'): LeasedKeys {
    const table = new LeasedKeys(limit, sync, this);
    this.tables.push(table);
    return table;
  }

  /** The limit has changed or is gone: what was leased under it goes back. */
  retire(table: LeasedKeys): void {
    const index = this.tables.indexOf(table);
    if (index >= 0) this.tables.splice(index, 1);
    table.close(this.clock.now());
  }

  submit(call: LeaseCall): void {
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
    for (const table of this.tables) table.close(now);
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const table of this.tables) table.sweep(now);
  }
}
