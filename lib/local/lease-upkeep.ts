import { type Cancel, type Clock } from '../common/clock.js';
import { type AppTokens } from './app-tokens.js';
import { type LeaseCalls, type QuotaNodeSettings } from './lease-calls.js';
import { type StockPlan } from './stock-plan.js';

/** When a node calls the store: after a request that left the stock low, and by one timer. */
export class LeaseUpkeep {
  /** When the timer fires; infinite while nothing waits for it. */
  wakesAt = Infinity;
  private cancel: Cancel | undefined;
  private isStopped = false;

  constructor(
    private readonly settings: QuotaNodeSettings,
    private readonly apps: readonly AppTokens[],
    private readonly plan: StockPlan,
    private readonly calls: LeaseCalls,
    private readonly clock: Clock,
  ) {}

  /** The node is looked at by that instant, or by an earlier one that was set before. */
  wakeAt(at: number): void {
    if (at >= this.wakesAt || this.isStopped) return;
    this.cancel?.();
    this.wakesAt = at;
    const delayMs = Math.max(1, (at - this.clock.now()) / 1000);
    this.cancel = this.clock.after(delayMs, () => {
      this.wakesAt = Infinity;
      this.wake(this.clock.now());
    });
  }

  /** Ends the upkeep for good. */
  stop(): void {
    this.isStopped = true;
    this.cancel?.();
  }

  /** After a request has left the stock of an app low, or much of it unreported. */
  refill(app: AppTokens, now: number): void {
    const { calls, plan } = this;
    if (calls.isOffline || calls.flight !== undefined) return;
    const { horizonMicros, syncMicros } = this.settings;
    if (app.used >= app.reportAt) return calls.call(now);
    if (app.tokens > app.refillAt) return this.wakeAt(now + syncMicros);
    // Tokens that did not come with the last call will hardly come with the next one right after it.
    const soonest = app.isStuck ? calls.lastAt + horizonMicros / 2 : 0;
    // Before any look at the stock: requests come here one by one while the pace allows no call.
    const dueAt = Math.max(soonest, calls.nextAt);
    if (now < dueAt) return this.wakeAt(dueAt);
    plan.renew();
    if (plan.want(app, now) === 0) this.wakeAt(now + syncMicros);
    else calls.call(now);
  }

  /** Does what is due: a probe, a report, a refill, or giving back; and rests when nothing is. */
  private wake(now: number): void {
    const { calls, plan } = this;
    if (calls.flight !== undefined) return;
    if (calls.isOffline) return calls.call(now);
    const { syncMicros } = this.settings;
    plan.renew();
    let holds = false;
    let isDue = calls.unanswered !== undefined || calls.revisions.isAwaited;
    for (const app of this.apps) {
      if (now >= app.expiresAt) app.spend(Infinity, now);
      if (app.tokens + app.used + app.usage.count > 0) holds = true;
      if (app.isOutOfStep) isDue = true;
      if (app.usage.count > 0 && calls.writer.reportsUsageAt(now)) isDue = true;
      if (app.used > 0 && now - calls.lastAt >= syncMicros) isDue = true;
      if (app.lastShortage !== 'none' && app.demand.recent(now) > 0) isDue = true;
      if (plan.surplus(app, now) > 0) isDue = true;
      const isLow = holds && app.tokens <= app.refillAt;
      if (isLow && plan.want(app, now) > 0) isDue = true;
    }
    if (isDue) calls.call(now);
    else if (holds) this.wakeAt(this.nextLook(now));
  }

  /** The next look is in one pace, or when a report is due if that is earlier. */
  private nextLook(now: number): number {
    const { syncMicros, paceMicros } = this.settings;
    const reportAt = this.calls.lastAt + syncMicros;
    return reportAt > now ? Math.min(now + paceMicros, reportAt) : now + paceMicros;
  }
}
