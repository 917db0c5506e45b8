import { type AppTokens } from './app-tokens.js';
import { type NodeSurroundings } from './node-surroundings.js';
import { type LeaseCalls } from './lease-calls.js';
import { type RevisionWatch } from './revision-watch.js';
import { type WakeTimer } from './wake-timer.js';

/** Keeps the stock of a node and the store's books in step: when a call is due, and when not yet. */
export class LeaseUpkeep {
  constructor(
    private readonly node: NodeSurroundings,
    private readonly calls: LeaseCalls,
    private readonly timer: WakeTimer,
    private readonly revisions: RevisionWatch,
  ) {}

  /** After a request has left the stock of an app low, or much of it unreported. */
  refill(tank: AppTokens, now: number): void {
    const { calls, timer } = this;
    const { settings, plan } = this.node;
    if (calls.contact.isOffline || calls.flight !== undefined) return;
    const { horizonMicros, syncMicros } = settings;
    if (tank.used >= tank.reportAt) return calls.call(now);
    if (tank.tokens > tank.refillAt) return timer.arm(now + syncMicros);
    // What did not come with the last call will hardly come with the next one right after it.
    const soonest = tank.isStuck ? calls.lastAt + horizonMicros / 2 : 0;
    // Before any look at the stock: requests come here one by one while the pace allows no call.
    const dueAt = Math.max(soonest, calls.nextAt);
    if (now < dueAt) return timer.arm(dueAt);
    plan.renew();
    if (plan.want(tank, now) === 0) timer.arm(now + syncMicros);
    else calls.call(now);
  }

  /** Does what is due: a probe, a report, a refill, or giving back; and rests when nothing is. */
  wake(now: number): void {
    const { calls } = this;
    const { tanks, settings, plan } = this.node;
    if (calls.flight !== undefined) return;
    if (calls.contact.isOffline) return calls.call(now);
    const { syncMicros } = settings;
    plan.renew();
    let holds = false;
    let isDue = calls.unanswered !== undefined || this.revisions.isAwaited;
    for (const tank of tanks) {
      if (now >= tank.expiresAt) tank.spend(Infinity, now);
      if (tank.tokens + tank.used + tank.usage.count > 0) holds = true;
      if (tank.isOutOfStep) isDue = true;
      if (tank.usage.count > 0 && calls.writer.tellsUsageAt(now)) isDue = true;
      if (tank.used > 0 && now - calls.lastAt >= syncMicros) isDue = true;
      if (tank.lastShortage !== 'none' && tank.demand.recent(now) > 0) isDue = true;
      if (plan.surplus(tank, now) > 0) isDue = true;
      const isLow = holds && tank.tokens <= tank.refillAt;
      if (isLow && plan.want(tank, now) > 0) isDue = true;
    }
    if (isDue) calls.call(now);
    else if (holds) this.timer.arm(this.nextLook(now));
  }

  /** In one pace, or when a report is due if that is earlier. */
  private nextLook(now: number): number {
    const { syncMicros, paceMicros } = this.node.settings;
    const reportAt = this.calls.lastAt + syncMicros;
    return reportAt > now ? Math.min(now + paceMicros, reportAt) : now + paceMicros;
  }
}
