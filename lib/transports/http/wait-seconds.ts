/** As `Retry-After` has it: never too early, and never at once. */
export function waitSeconds(retryAfterMs: number): number {
  return Math.max(1, Math.ceil(retryAfterMs / 1000));
}
