import {
  type ConsumptionReport,
  type Overload,
  type QuotaAdjust,
  type TokenRequest,
  type TokenResponse,
} from '../algorithms/quota/index.js';
import { InvalidArgumentError } from '../common/errors.js';
import { oneOf } from '../common/validate.js';
import { type NodeMode } from '../local/quota-node.js';
import { type StoreSwitch } from '../stores/index.js';

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
  /** The store goes by limits of a later revision than this limiter. Once per revision. */
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

type Listener<E> = (event: E) => void;

/** Listeners by event. One that throws does not keep the others, or a decision, from happening. */
export class EventHub {
  private readonly listeners = new Map<keyof RateLimiterEvents, Set<Listener<never>>>();

  on<N extends keyof RateLimiterEvents>(
    name: N,
    listener: Listener<RateLimiterEvents[N]>,
  ): () => void {
    oneOf('event', name, EVENTS);
    if (typeof listener !== 'function') {
      throw new InvalidArgumentError('listener', listener, 'a function');
    }
    let listeners = this.listeners.get(name);
    if (listeners === undefined) this.listeners.set(name, (listeners = new Set()));
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Whether anybody listens; for events that are work to put together. */
  has(name: keyof RateLimiterEvents): boolean {
    return (this.listeners.get(name)?.size ?? 0) > 0;
  }

  emit<N extends keyof RateLimiterEvents>(name: N, event: RateLimiterEvents[N]): void {
    for (const listener of this.listeners.get(name) ?? []) {
      try {
        (listener as Listener<RateLimiterEvents[N]>)(event);
      } catch (error) {
        // The listener's fault, told where such faults are told; the limiter goes on.
        process.emitWarning(error instanceof Error ? error : String(error));
      }
    }
  }
}
