import { type ExecutionContext } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { type Acquire, type RateLimiter } from '../limiter/rate-limiter.js';
import { type Transport } from './request-reader.js';

/** Holds requests back that a shaper lets pass later. */
export class Waiting {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly clock: Pick<Clock, 'after'>,
  ) {}

  /** Resolves when the request may go; false if its caller is gone, and then its tokens go back. */
  hold(
    delayMs: number,
    request: Acquire,
    context: ExecutionContext,
    transport: Transport,
  ): Promise<boolean> {
    return new Promise((resolve) => {
      const stopListening = transport.whenAborted(context, () => {
        cancel();
        stopListening();
        void Promise.resolve(this.limiter.refund(request)).finally(() => resolve(false));
      });
      const cancel = this.clock.after(delayMs, () => {
        stopListening();
        resolve(true);
      });
    });
  }
}
