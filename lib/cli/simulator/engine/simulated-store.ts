import { QuotaLedger } from '../../../algorithms/quota/quota-ledger.js';
import { compileQuota, type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import { type QuotaCall, type QuotaReply } from '../../../algorithms/quota/quota-protocol.js';
import { type QuotaStore } from '../../../stores/quota-store.js';
import { type Network } from './network.js';
import { type VirtualTime } from './virtual-time.js';

/** The real ledger at the far end of a network, with a clock of its own and a replica. */
export class SimulatedStore implements QuotaStore {
  ledger: QuotaLedger;
  /** Calls do not say what their nodes have seen, as if all of them had just been started. */
  hidesWhatWasSeen = false;
  private offsetMicros = 0;
  private replica: LaggingReplica | undefined;

  constructor(
    private figures: QuotaFigures,
    private readonly time: VirtualTime,
    private readonly network: Network,
  ) {
    this.ledger = new QuotaLedger(compileQuota(figures));
  }

  settle(call: QuotaCall): Promise<QuotaReply> {
    return this.network.call(() => {
      const now = this.now();
      const heard = this.hidesWhatWasSeen ? { ...call, seenEpoch: 0, seenSequence: 0 } : call;
      this.replica?.follow(now, heard);
      return this.ledger.settle(now, heard);
    });
  }

  now(): number {
    return this.time.now() + this.offsetMicros;
  }

  stepClock(seconds: number): void {
    this.offsetMicros += seconds * 1e6;
  }

  /** The data is gone, as after a flush or a restart without persistence. */
  lose(): void {
    this.ledger.lose();
  }

  replicate(lagSeconds: number): void {
    this.replica = new LaggingReplica(this.figures, this.time, lagSeconds);
  }

  /** The replica takes over as it is; what it has not heard of by now never happened. */
  promoteReplica(): void {
    if (this.replica === undefined) throw new Error('there is no replica to promote');
    this.ledger = this.replica.promote();
    this.replica = undefined;
  }

  /** Settles under the old limits, and goes on with the new ones and the same fill ratio. */
  changeLimits(figures: QuotaFigures): void {
    this.ledger.change(this.now(), compileQuota(figures));
    this.figures = figures;
  }
}

/** Settles the same calls as the primary, each of them one lag later. */
class LaggingReplica {
  private readonly ledger: QuotaLedger;
  private isPromoted = false;

  constructor(
    figures: QuotaFigures,
    private readonly time: VirtualTime,
    private readonly lagSeconds: number,
  ) {
    this.ledger = new QuotaLedger(compileQuota(figures));
  }

  follow(now: number, call: QuotaCall): void {
    this.time.after(this.lagSeconds * 1000, () => {
      if (!this.isPromoted) this.ledger.settle(now, call);
    });
  }

  promote(): QuotaLedger {
    this.isPromoted = true;
    return this.ledger;
  }
}
