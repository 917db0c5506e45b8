import { type Clock } from '../../common/clock.js';
import { type HealthProbe } from './contract.js';

/**
 * Runs a check of the user's and tells once what it found: not well, if it says false, throws, rejects or
 * is not done in time. The function that comes back ends it without a word.
 */
export function runHealthProbe(
  probe: HealthProbe,
  timeoutMs: number,
  clock: Clock,
  found: (isWell: boolean, durationMs: number) => void,
): () => void {
  const startedAt = clock.now();
  const controller = new AbortController();
  let isOpen = true;
  const end = (isWell: boolean | undefined): void => {
    if (!isOpen) return;
    isOpen = false;
    cancel();
    if (isWell !== true) controller.abort();
    if (isWell !== undefined) found(isWell, (clock.now() - startedAt) / 1000);
  };
  const cancel = clock.after(timeoutMs, () => end(false));
  void begin(probe, controller.signal).then(
    (answer) => end(answer !== false),
    () => end(false),
  );
  return () => end(undefined);
}

/** What throws at once has failed like what rejects. */
async function begin(probe: HealthProbe, signal: AbortSignal): Promise<unknown> {
  return await probe(signal);
}
