/** What the process holds on to. Twice: what the first collection finalises, the second one frees. */
export function settledBytes(): number {
  if (globalThis.gc === undefined) throw new Error('node must be started with --expose-gc');
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
