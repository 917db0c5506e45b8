import { type ExecutionContext } from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { RateLimitError } from '../common/errors.js';
import { type Decision } from '../limiter/decision.js';
import { type Acquire, type RateLimiter } from '../limiter/rate-limiter.js';
import { type Transport, type WaitPolicy } from '../requests/transport.js';
import { type Payment } from './charges.js';

const KEEP_ALIVE_MS = 1000;

/** Holds back requests that may pass later. */
export class Waiting {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly clock: Pick<Clock, 'after' | 'every'>,
  ) {}

  /** Resolves when the tokens of a denied request were taken after all; undefined if they were not. */
  async forTokens(request: Acquire, waitPolicy: WaitPolicy): Promise<Decision | undefined> {
    const end = this.begin(waitPolicy);
    try {
      return await this.limiter.acquire(request, { timeoutMs: waitPolicy.maxWaitMs });
    } catch (error) {
      if (error instanceof RateLimitError) return undefined;
      throw error;
    } finally {
      end();
    }
  }

  /** Keeps a connection alive until the result is called. */
  private begin(waitPolicy: WaitPolicy): () => void {
    const stop = this.clock.every(KEEP_ALIVE_MS, () => waitPolicy.keepAlive());
    waitPolicy.begin();
    return () => {
      waitPolicy.end();
      stop();
    };
  }

  /** The limiter may be closed by now, or the limit smaller than what was taken under it. */
  async giveBack(payments: readonly Payment[]): Promise<void> {
    const refund = async ({ asked, decision }: Payment): Promise<void> => {
      try {
        await this.limiter.refund(asked, decision);
      } catch (error) {
        if (!(error instanceof RateLimitError)) throw error;
      }
    };
    await Promise.all(payments.map(refund));
  }

  /** For requests of a shaper. Resolves when the request may go; false if its caller is gone, and then its tokens go back. */
  hold(
    decision: Decision,
    request: Acquire,
    context: ExecutionContext,
    transport: Transport,
    waitPolicy?: WaitPolicy,
  ): Promise<boolean> {
    const finish = waitPolicy === undefined ? undefined : this.begin(waitPolicy);
    return new Promise((resolve) => {
      let isOver = false;
      let stopListening = (): void => undefined;
      const end = (then: () => void): void => {
        if (isOver) return;
        isOver = true;
        finish?.();
        cancel();
        stopListening();
        then();
      };
      const cancel = this.clock.after(decision.delayMs, () => end(() => resolve(true)));
      stopListening = transport.whenAborted(context, () =>
        end(() => {
          void this.giveBack([{ asked: request, decision }]).finally(() => resolve(false));
        }),
      );
      // A transport may call back at once for a caller that has left before.
      if (isOver) stopListening();
    });
  }
}
