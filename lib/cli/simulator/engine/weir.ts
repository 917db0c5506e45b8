import { compileQuota, storeFillMicrosOf } from '../../../algorithms/quota/quota-limits.js';
import { durationMs } from '../../../common/duration.js';
import { AppTokens } from '../../../local/app-tokens.js';
import { shareFillMicrosOf } from '../../../local/offline-share.js';
import { QuotaNode, type QuotaOutcome } from '../../../local/quota-node.js';
import { type Contender, type LimiterNode } from './contender.js';
import { quotaHorizonMicros } from '../../../local/lease-figures.js';
import { type Host } from './host.js';
import { DECISION_TIMEOUT_MS, type World } from './world.js';

/** The library itself: the local tier as it ships, on the ledger as it ships. */
export const WEIR: Contender = {
  name: 'weir',
  start: (world) => (host) => new WeirNode(world, host),
};

const NOBODY_LISTENS = { mode: () => {}, epoch: () => {}, overload: () => {} };

class WeirNode implements LimiterNode {
  private readonly node: QuotaNode;
  private readonly apps: AppTokens[];

  constructor({ quota, random }: World, host: Host) {
    const { figures, local } = quota;
    const limits = compileQuota(figures);
    const share = { maxCost: figures.maxCost, fillMicros: shareFillMicrosOf(limits) };
    const storeFillMicros = storeFillMicrosOf(limits);
    this.apps = figures.apps.map(({ app, guaranteed, burst }, index) => {
      return new AppTokens(index, app, { guaranteed, burst, ...share, storeFillMicros });
    });
    const settings = {
      nodeId: host.nodeId,
      incarnation: host.incarnation,
      horizonMicros: quotaHorizonMicros(limits),
      paceMicros: figures.paceMs * 1000,
      syncMicros: durationMs(local.syncInterval, 'quota.local.syncInterval') * 1000,
      batchThreshold: local.batchThreshold,
      reserveTarget: figures.reserveTarget,
      refillThreshold: local.refillThreshold,
      decisionTimeoutMs: DECISION_TIMEOUT_MS,
    };
    this.node = new QuotaNode(settings, this.apps, host, host.clock, NOBODY_LISTENS, random);
  }

  request(app: number, cost: number): boolean | Promise<boolean> {
    const outcome = this.node.tryAcquire(this.apps[app]!, cost);
    return outcome instanceof Promise ? outcome.then(isAllowed) : outcome.allowed;
  }

  leave(): Promise<void> {
    return this.node.leave();
  }
}

function isAllowed({ allowed }: QuotaOutcome): boolean {
  return allowed;
}
