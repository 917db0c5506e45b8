import { monitorEventLoopDelay, performance } from 'node:perf_hooks';

export interface LoadResult {
  readonly issued: number;
  /** The wait of each caller, without those that failed or were never answered. */
  readonly latenciesMs: readonly number[];
  readonly failed: number;
  readonly loopDelayP999Ms: number;
}

export interface Load {
  readonly perSecond: number;
  readonly durationMs: number;
  /** Time after the last request in which an answer may still come. */
  readonly graceMs: number;
}

const TICK_MS = 5;

/**
 * Asks at a steady pace whether or not answers come: callers of a service do not slow down because
 * it does, and a load that waits for its answers would hide every stall but the first.
 */
export async function underLoad(load: Load, ask: (n: number) => unknown): Promise<LoadResult> {
  const loopDelay = monitorEventLoopDelay({ resolution: 1 });
  const latenciesMs: number[] = [];
  let issued = 0;
  let failed = 0;

  const askOnce = async (n: number): Promise<void> => {
    const askedMs = performance.now();
    try {
      await ask(n);
      latenciesMs.push(performance.now() - askedMs);
    } catch {
      failed++;
    }
  };

  loopDelay.enable();
  const startedMs = performance.now();
  await new Promise<void>((resolve) => {
    const timer = setInterval(() => {
      const elapsedMs = Math.min(performance.now() - startedMs, load.durationMs);
      const due = Math.floor((elapsedMs * load.perSecond) / 1000);
      while (issued < due) void askOnce(issued++);
      if (elapsedMs < load.durationMs) return;
      clearInterval(timer);
      resolve();
    }, TICK_MS);
  });
  await new Promise((resolve) => setTimeout(resolve, load.graceMs));
  loopDelay.disable();
  return { issued, latenciesMs, failed, loopDelayP999Ms: loopDelay.percentile(99.9) / 1e6 };
}
