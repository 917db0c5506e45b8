import { errorText } from '../common/errors.js';
import { type Cancel, type Clock, later } from '../common/clock.js';
import { type Report } from '../common/report.js';
import { type WarmedResource } from './route-warming.js';
import { type OpenOrder, type OrderResult, type OrderStore } from '../stores/order-store.js';

export interface WarmOrdersSettings {
  readonly store: OrderStore;
  readonly service: string;
  readonly nodeId: string;
  readonly clock: Pick<Clock, 'every' | 'random'>;
  readonly report: Report;
  /** The resources that this process can warm. */
  readonly names: () => readonly string[];
  readonly warm: (resource?: string) => Promise<readonly WarmedResource[]>;
}

/** Another process takes over if one has not been heard of for so long. */
const LEASE_MS = 15_000;
const RENEWED_EVERY_MS = 5000;
/** One process of a service comes first, and saves the others the attempt. */
const SPREAD_MS = 50;

/** Carries out orders to warm answers, one process for all of its service. */
export class WarmOrders {
  /** Those that this process has begun, and what came of them. */
  private readonly begun = new Map<number, OrderResult | undefined>();
  private cancel: Cancel = () => {};
  private isLooking = false;
  private closed = false;

  constructor(private readonly settings: WarmOrdersSettings) {}

  /** There is something to look at, perhaps. */
  look(): void {
    if (this.closed || this.isLooking || this.settings.names().length === 0) return;
    this.isLooking = true;
    void this.lookNow()
      .catch(() => {
        // It is looked at again with the next poll.
      })
      .finally(() => (this.isLooking = false));
  }

  close(): void {
    this.closed = true;
    this.cancel();
  }

  private async lookNow(): Promise<void> {
    const { nowMs, orders } = await this.settings.store.read();
    let nextMs = Infinity;
    for (const order of orders) {
      const whenMs = this.whenOf(order, nowMs);
      if (whenMs <= nowMs) await this.carryOut(order);
      else nextMs = Math.min(nextMs, whenMs);
    }
    for (const id of this.begun.keys()) {
      if (orders.every((order) => order.id !== id)) this.begun.delete(id);
    }
    this.cancel();
    if (nextMs === Infinity || this.closed) return;
    const { clock } = this.settings;
    const delayMs = nextMs - nowMs + SPREAD_MS * clock.random();
    this.cancel = later(clock, delayMs, () => this.look());
  }

  /** When it is this process's turn; never if it is done, or not for it. */
  private whenOf({ id, atMs, resource, claims }: OpenOrder, nowMs: number): number {
    const { names, service, nodeId } = this.settings;
    const claim = claims.get(service);
    if (claim !== undefined && claim.result !== null) return Infinity;
    if (resource !== undefined && !names().includes(resource)) return Infinity;
    if (this.begun.has(id)) return this.begun.get(id) === undefined ? Infinity : nowMs;
    if (claim !== undefined && claim.node !== nodeId) return claim.untilMs;
    return atMs;
  }

  /** Does not wait until it is done. */
  private async carryOut({ id, resource, by }: OpenOrder): Promise<void> {
    const known = this.begun.get(id);
    if (known !== undefined) return void (await this.claim(id, known));
    if (!(await this.claim(id))) return;
    this.begun.set(id, undefined);
    void this.warm(id, by, resource);
  }

  private async warm(id: number, by: string, resource: string | undefined): Promise<void> {
    const { clock, report, warm } = this.settings;
    const name = `warm order ${id} by ${by}`;
    report.info(`${name}: begun`);
    const stop = clock.every(RENEWED_EVERY_MS, () => void this.claim(id).catch(() => false));
    let result: OrderResult;
    try {
      const warmed = await warm(resource);
      result = { warmed };
      const all = warmed.map((one) => `${one.resource} ${one.warmed} warmed, ${one.failed} failed`);
      report.info(`${name}: ${all.join('; ')}`);
    } catch (error) {
      result = { error: errorText(error) };
      report.error(`${name} failed: ${errorText(error)}`);
    } finally {
      stop();
    }
    this.begun.set(id, result);
    // If that does not arrive, the next look says it again.
    await this.claim(id, result).catch(() => this.look());
  }

  private claim(id: number, result?: OrderResult): Promise<boolean> {
    const { store, service, nodeId } = this.settings;
    return store.claim(id, service, nodeId, LEASE_MS, result);
  }
}
