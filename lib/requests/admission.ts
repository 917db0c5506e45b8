import { type TierRequest } from './tier.js';
import { type WaitPolicy } from './transport.js';

/** A request that comes to a guard without having been in line at a server. */
export interface LineEntry {
  /** The same object for all guards of the request, so that it is in line once. */
  readonly subject: object;
  rawRequest(): TierRequest;
  isGone(): boolean;
  /** Of a request that is never refused, but waits: its sender keeps what is not taken. */
  readonly waitPolicy: WaitPolicy | undefined;
}

export type Admitted = 'run' | 'refused' | 'gone';

/** Decides, before any limit does, whether this process has time for a request. */
export abstract class Admission {
  abstract get isOn(): boolean;
  /** True, and it runs now; else what becomes of it. @internal */
  abstract admit(entry: LineEntry): true | Promise<Admitted>;
  /** When a request that was refused may come again. @internal */
  abstract retryAfterMs(): number;
}
