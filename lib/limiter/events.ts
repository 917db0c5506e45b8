import {
  type AppCall,
  type AppReply,
  type QuotaCall,
  type QuotaReply,
} from '../algorithms/quota/quota-protocol.js';
import { EventHub } from '../common/event-hub.js';
import { type NodeMode } from '../local/lease-calls.js';
import { type StoreSwitch } from '../stores/remote-store.js';

/** The events of a limiter. */
export interface RateLimiterEvents {
  /** The shared store stopped answering (failure modes apply) or answers again. Once per switch. */
  store: StoreSwitch;
  /** An app's requests are decided in another way from now on. */
  mode: { readonly app: string; readonly mode: NodeMode };
  /** The store has lost state, or may have; buckets start empty. */
  epoch: { readonly epoch: number };
  /** The demand of all apps is above nine tenths of the capacity, or no longer is. */
  overload: ClusterOverload;
  /** An app may have more or less than before, because overload has begun, changed or ended. */
  quota_adjust: QuotaAdjust;
  /** The store has answered this node's call for an app. */
  lease: { readonly request: TokenRequest; readonly response: TokenResponse };
  /** The consumption of an app on this node; about once a second, and at the end. */
  consumption: ConsumptionReport;
  /** `hot` has no effect: a tenth of the limit, divided among so many nodes, is less than one request. */
  hot_idle: { readonly policy: string; readonly limit: number; readonly nodes: number };
  /** The store has limits of a later revision than this process has. Once for each revision. */
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
  'hot_idle',
  'revision',
];

/** The listeners of a limiter. */
export type LimiterEvents = EventHub<RateLimiterEvents>;

export const newLimiterEvents = (): LimiterEvents => new EventHub<RateLimiterEvents>(EVENTS);

/*
 * The messages between the tiers, one app at a time. What travels is a QuotaCall and its reply, which
 * hold all of them for all apps of a node; these are the same figures for people and for programs that
 * watch. Instants are wall-clock milliseconds.
 */

/** A node asks for tokens. */
export interface TokenRequest {
  readonly type: 'token_request';
  readonly app: string;
  readonly node: string;
  /** Tokens to add to what the node holds, and tokens for requests that wait. */
  readonly requested: number;
  /** Tokens that the node holds. */
  readonly currentLocal: number;
  readonly timestampMs: number;
}

/** The store's answer. */
export interface TokenResponse {
  readonly type: 'token_response';
  readonly app: string;
  readonly granted: number;
  /** Whole tokens left that the app is sure of. */
  readonly remaining: number;
  /** When what was short will be covered; now if nothing was. */
  readonly nextRefillMs: number;
}

/** The consumption of an app's quota by a node in a period. */
export interface ConsumptionReport {
  readonly type: 'consumption_report';
  readonly app: string;
  readonly node: string;
  readonly periodStartMs: number;
  readonly periodEndMs: number;
  readonly totalCost: number;
  readonly requestCount: number;
  readonly byMethod: Readonly<Record<string, { readonly cost: number; readonly count: number }>>;
}

/** An app has other figures from an instant on. */
export interface ConfigUpdate {
  readonly type: 'config_update';
  readonly app: string;
  readonly guaranteed: number;
  readonly burst: number;
  readonly effectiveAtMs: number;
  readonly revision: number;
}

/** The demand of all apps is above nine tenths of the capacity, or no longer is. */
export interface ClusterOverload {
  readonly type: 'overload';
  readonly overloaded: boolean;
}

/** The tokens per second that an app may have just now: its share during overload, else its burst. */
export interface QuotaAdjust {
  readonly type: 'quota_adjust';
  readonly app: string;
  readonly perSecond: number;
  readonly guaranteed: number;
  readonly overloaded: boolean;
}

export function tokenRequest(
  { node }: QuotaCall,
  { needs, want, holding = 0 }: AppCall,
  app: string,
  timestampMs: number,
): TokenRequest {
  const waiting = needs.reduce((sum, { cost, count }) => sum + cost * count, 0);
  const requested = want + waiting;
  return { type: 'token_request', app, node, requested, currentLocal: holding, timestampMs };
}

export function tokenResponse(
  { needs: asked }: AppCall,
  { granted, needs, remaining, retryAfterMicros }: AppReply,
  { nowMicros }: QuotaReply,
  app: string,
): TokenResponse {
  const served = asked.reduce((sum, { cost }, group) => sum + cost * (needs[group] ?? 0), 0);
  const nextRefillMs = Math.ceil((nowMicros + retryAfterMicros) / 1000);
  return { type: 'token_response', app, granted: granted + served, remaining, nextRefillMs };
}

/** Undefined if the call reports no consumption of the app: that travels only now and then. */
export function consumptionReport(
  { node }: QuotaCall,
  { consumption }: AppCall,
  app: string,
  periodEndMs: number,
): ConsumptionReport | undefined {
  if (consumption === undefined) return undefined;
  const { cost, count, methods, periodMs } = consumption;
  return {
    type: 'consumption_report',
    app,
    node,
    periodStartMs: periodEndMs - periodMs,
    periodEndMs,
    totalCost: cost,
    requestCount: count,
    byMethod: Object.fromEntries(methods.map(({ method, ...use }) => [method, use])),
  };
}
