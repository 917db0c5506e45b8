export interface UntilOptions {
  readonly timeoutMs?: number;
  readonly intervalMs?: number;
  /** The awaited event in words; part of the error when it does not come. */
  readonly what?: string;
}

/**
 * Polls until `condition` gives something truthy, and resolves to that. A condition that throws is
 * one that does not hold yet; the last error is the cause of the one thrown at the deadline.
 */
export async function until<T>(
  condition: () => T | Promise<T>,
  { timeoutMs = 30_000, intervalMs = 10, what = 'a condition' }: UntilOptions = {},
): Promise<NonNullable<T>> {
  const deadlineMs = performance.now() + timeoutMs;
  let lastError: unknown;
  for (;;) {
    try {
      const value = await orNothingAfter(deadlineMs - performance.now(), condition);
      if (value) return value;
    } catch (error) {
      lastError = error;
    }
    if (performance.now() >= deadlineMs) {
      throw new Error(`waited ${timeoutMs} ms in vain for ${what}`, { cause: lastError });
    }
    await pause(intervalMs);
  }
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** A condition may ask a server that has stopped answering: the deadline holds for it as well. */
async function orNothingAfter<T>(
  ms: number,
  condition: () => T | Promise<T>,
): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  const deadline = new Promise<undefined>((resolve) => {
    timer = setTimeout(() => resolve(undefined), Math.max(0, ms));
  });
  try {
    return await Promise.race([condition(), deadline]);
  } finally {
    clearTimeout(timer);
  }
}
