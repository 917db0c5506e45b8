import { type LeaseGrant, type LeaseReport } from '../algorithms/leased-bucket.js';
import { CallKind, type LeaseCall, type SharedLimit } from '../stores/remote-store.js';
import { type KeyLease } from './key-lease.js';
import { type LeasedKeys } from './key-leases.js';

/** One call for one key; the instant is from before it was sent. */
export class KeyCall implements LeaseCall {
  readonly kind = CallKind.Lease;

  constructor(
    private readonly keys: LeasedKeys,
    readonly limit: SharedLimit,
    readonly lease: KeyLease,
    readonly want: number,
    readonly report: LeaseReport,
    readonly sentAt: number,
  ) {}

  get key(): string {
    return this.lease.key;
  }

  settled(grant: LeaseGrant): void {
    this.keys.settled(this, grant, false);
  }

  failed(): void {
    this.keys.failed(this.lease);
  }

  settledLate(grant: LeaseGrant): void {
    this.keys.settled(this, grant, true);
  }
}
