/** What has been decided so far, under all tiers of a policy. */
export interface LimitCounters {
  allowed: number;
  denied: number;
  /** Would have been denied, but the policy only watches. */
  shadowDenied: number;
  /** Decided without the store because it could not answer. */
  fallback: number;
  /** Brought figures along that there was no room for, and were decided under the default tier. */
  defaulted: number;
  /** Of limits that are gone: what those still there count by themselves comes on top of it. */
  overflowed: number;
  leased: number;
  leaseCalls: number;
  /** Requests under `key: 'user'` without a user, which the policy's `anonymous` key was taken for. */
  anonymous: number;
}

export function noCounts(): LimitCounters {
  return {
    allowed: 0,
    denied: 0,
    shadowDenied: 0,
    fallback: 0,
    defaulted: 0,
    overflowed: 0,
    leased: 0,
    leaseCalls: 0,
    anonymous: 0,
  };
}
