/** The right to probe a resource, which one node of a fleet has at a time. */
export interface ProbeLease {
  /** True if this node may probe. While the store does not answer it may: better two than none. */
  tryHold(resource: string, ttlMs: number): Promise<boolean> | boolean;
  /** Gives the lease up before its time. Does not throw, and no caller waits for it. */
  release(resource: string): void;
}

/** For a process by itself. */
export const SOLE_PROBER: ProbeLease = { tryHold: () => true, release: () => {} };
