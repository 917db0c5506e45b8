import { type BreakerKind } from './breaker-state.js';

/** The events of protection. */
export interface ProtectionEvents {
  /** A call took long. Of many such calls every `sampleEvery`-th is an event. */
  slow: SlowCall;
  /** A call has held its slot for longer than `heldWarning`: a leak, or a resource that hangs. */
  held: HeldSlot;
  /** A breaker has another state from now on. */
  breaker: BreakerChange;
  /** A call failed, and its caller was given another answer than its error. */
  fallback: ReplacedError;
}

/** A call that took longer than its resource should. */
export interface SlowCall {
  readonly resource: string;
  readonly ms: number;
  /** The label of the call, such as the text of a query; cut to `maxLabel`. */
  readonly label: string | undefined;
  /** How many there were since the start, this one included. */
  readonly count: number;
}

/** A slot that has been held for too long. */
export interface HeldSlot {
  readonly resource: string;
  readonly ms: number;
  readonly label: string | undefined;
}

/** A breaker has another state. */
export interface BreakerChange {
  readonly resource: string;
  readonly from: BreakerKind;
  readonly to: BreakerKind;
  /** True if the breaker is only observed: no call was or will be turned away. */
  readonly observed: boolean;
  /** Of those that led to it, if it opened by its rates. */
  readonly window?: { readonly calls: number; readonly failures: number; readonly slow: number };
}

/** An error whose caller got another answer. */
export interface ReplacedError {
  readonly resource: string;
  readonly error: unknown;
}

export const PROTECTION_EVENTS: readonly (keyof ProtectionEvents)[] = [
  ...(['slow', 'held', 'breaker', 'fallback'] as const),
];
