import { type Clock } from '../../common/clock.js';
import { StoreTimeoutError, StoreUnavailableError } from '../../common/errors.js';

/** The answer to a command, or an error of ours: at the latest when the time is up. */
export async function inTime<T>(
  command: Promise<T>,
  timeoutMs: number,
  clock: Pick<Clock, 'after' | 'soon'>,
  why: () => Error | undefined = () => undefined,
): Promise<T> {
  let cancel = (): void => {};
  const late = new Promise<never>((_, reject) => {
    // After a stall of this process the reply may be here already, and gets its turn first.
    const giveUp = (): void => reject(new StoreTimeoutError(timeoutMs, why()));
    cancel = clock.after(timeoutMs, () => clock.soon(giveUp));
  });
  try {
    return await Promise.race([command, late]);
  } catch (error) {
    if (error instanceof StoreUnavailableError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new StoreUnavailableError(reason, { cause: error });
  } finally {
    cancel();
  }
}
