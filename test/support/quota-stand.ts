import { QuotaLedger } from '../../lib/algorithms/quota/quota-ledger.js';
import { compileQuota } from '../../lib/algorithms/quota/quota-limits.js';
import { type QuotaCall, type QuotaReply } from '../../lib/algorithms/quota/quota-protocol.js';
import { StoreTimeoutError, StoreUnavailableError } from '../../lib/common/errors.js';
import { AppTokens } from '../../lib/local/app-tokens.js';
import { QuotaNode, type QuotaOutcome } from '../../lib/local/quota-node.js';
import { ManualClock } from './manual-clock.js';

interface StandOptions {
  readonly guaranteed?: number;
  readonly burst?: number;
  readonly reserveTarget?: number;
  readonly maxCost?: number;
  readonly horizonMs?: number;
  /** Names of apps with the same figures; the first is that of `app`. */
  readonly apps?: readonly string[];
}

/** One node on a ledger whose answers come when the test says so. */
export class Stand {
  readonly clock = new ManualClock();
  readonly ledger: QuotaLedger;
  readonly calls: QuotaCall[] = [];
  readonly modes: string[] = [];
  readonly apps: AppTokens[];
  readonly app: AppTokens;
  readonly node: QuotaNode;
  /** How the store behaves: at once, later by hand, or not at all. */
  store: 'at once' | 'by hand' | 'lost' | 'times out' | 'unreachable' = 'at once';
  private readonly held: (() => void)[] = [];

  constructor({
    guaranteed = 10_000,
    burst = 50_000,
    reserveTarget = 0,
    maxCost = 10,
    apps = ['a'],
    horizonMs = 50,
  }: StandOptions = {}) {
    const figures = {
      cluster: undefined,
      apps: apps.map((app) => {
        return { app, guaranteed, burst, burstDurationMs: 60_000, priority: 1, elastic: true };
      }),
      maxCost,
      paceMs: 50,
      leaseTtlMs: 1000,
      reserveTarget,
    };
    this.ledger = new QuotaLedger(compileQuota(figures));
    const fill = { fillMicros: 1_000_000, storeFillMicros: 1_000_000 };
    const settings = { guaranteed, burst, maxCost, ...fill };
    this.apps = apps.map((app, index) => new AppTokens(index, app, settings));
    this.app = this.apps[0]!;
    this.node = new QuotaNode(
      {
        nodeId: 'n',
        incarnation: '1',
        horizonMicros: horizonMs * 1000,
        paceMicros: 50_000,
        syncMicros: 100_000,
        batchThreshold: 1000,
        reserveTarget,
        refillThreshold: 0.2,
        decisionTimeoutMs: 20,
      },
      this.apps,
      { settle: (call) => this.answer(call) },
      this.clock,
      { mode: (_app, mode) => this.modes.push(mode) },
      () => 0,
    );
  }

  take(cost = 1, app = this.app): QuotaOutcome | Promise<QuotaOutcome> {
    return this.node.tryAcquire(app, cost);
  }

  /** The tokens of an app that are leased, by the ledger. */
  outstanding(app = 0): number {
    return this.ledger.peek()!.apps[app]!.outstanding / 1e6;
  }

  release(): void {
    for (const resolve of this.held.splice(0)) resolve();
  }

  private answer(call: QuotaCall): QuotaReply | Promise<QuotaReply> {
    this.calls.push(call);
    switch (this.store) {
      case 'at once':
        return this.ledger.settle(this.clock.now(), call);
      case 'by hand':
        return new Promise((resolve) => {
          this.held.push(() => resolve(this.ledger.settle(this.clock.now(), call)));
        });
      case 'lost':
        this.ledger.settle(this.clock.now(), call);
        return Promise.reject(new StoreTimeoutError(20));
      case 'times out':
        return Promise.reject(new StoreTimeoutError(20));
      case 'unreachable':
        return Promise.reject(new StoreUnavailableError('no connection'));
    }
  }
}
