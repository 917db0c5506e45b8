import {
  type ConsumptionReport,
  type Overload,
  type QuotaAdjust,
  type TokenRequest,
  type TokenResponse,
} from '../algorithms/quota/quota-messages.js';
import { EventHub } from '../common/event-hub.js';
import { type NodeMode } from '../local/mode-watch.js';
import { type StoreSwitch } from '../stores/remote-store.js';

/** What the limiter tells about itself. */
export interface RateLimiterEvents {
  /** The shared store stopped answering (failure modes apply) or answers again. Once per switch. */
  store: StoreSwitch;
  /** An app's requests are decided in another way from now on. */
  mode: { readonly app: string; readonly mode: NodeMode };
  /** The store has lost state, or may have; buckets start empty. */
  epoch: { readonly epoch: number };
  /** All apps together ask for more than nine tenths of the capacity, or no longer do. */
  overload: Overload;
  /** An app may have more or less than before, because overload has begun, changed or ended. */
  quota_adjust: QuotaAdjust;
  /** The store has answered this node's call for an app. */
  lease: { readonly request: TokenRequest; readonly response: TokenResponse };
  /** What this node consumed of an app; about once a second, and at the end. */
  consumption: ConsumptionReport;
  /** The store has limits of a later revision than this process has. Told once for each revision. */
  revision: { readonly revision: number };
}

const EVENTS: readonly (keyof RateLimiterEvents)[] = [
  'store',
  'mode',
  'epoch',
  'overload',
  'quota_adjust',
  'lease',
  'consumption',
  'revision',
];

/** Those who listen to a limiter. */
export type LimiterEvents = EventHub<RateLimiterEvents>;

export const newLimiterEvents = (): LimiterEvents => new EventHub<RateLimiterEvents>(EVENTS);
