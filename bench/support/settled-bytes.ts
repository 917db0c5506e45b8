/** Bytes that the process holds on to. Collected twice: the second collection frees objects that the first finalised. */
export function settledBytes(): number {
  if (globalThis.gc === undefined) throw new Error('node must be started with --expose-gc');
  globalThis.gc();
  globalThis.gc();
  const { heapUsed, arrayBuffers } = process.memoryUsage();
  return heapUsed + arrayBuffers;
}
