/** What came of a request. */
export interface QuotaOutcome {
  readonly allowed: boolean;
  /** Who decided: tokens of this node, or the level that had not enough. */
  readonly tier: 'local' | 'app' | 'cluster';
  readonly source: 'local' | 'store' | 'fallback';
  readonly retryAfterMicros: number;
}

export const BY_LEASE: QuotaOutcome = {
  allowed: true,
  tier: 'local',
  source: 'local',
  retryAfterMicros: 0,
};
export const BY_STORE: QuotaOutcome = {
  allowed: true,
  tier: 'app',
  source: 'store',
  retryAfterMicros: 0,
};
export const BY_SHARE: QuotaOutcome = {
  allowed: true,
  tier: 'local',
  source: 'fallback',
  retryAfterMicros: 0,
};
