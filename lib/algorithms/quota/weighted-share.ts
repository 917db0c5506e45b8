/** What one app asks for and may have, in tokens per second. */
export interface ShareClaim {
  /** Offered demand: what was admitted and what was denied. */
  readonly demand: number;
  /** Never cut below this much of the demand. */
  readonly guaranteed: number;
  /** Never above this. */
  readonly burst: number;
  readonly weight: number;
}

/**
 * Shares of a capacity by weighted water-filling: everybody has the guaranteed part of its demand,
 * and what is left rises in all of them in proportion to their weights, until an app has all it
 * asks for or may have. So no app gets more than its weight while one with more weight goes short,
 * the same demand always gives the same shares, and nothing oscillates: demand is not a result of
 * the shares.
 */
export function weightedShares(claims: readonly ShareClaim[], capacity: number): number[] {
  const shares = claims.map(({ demand, guaranteed }) => Math.min(demand, guaranteed));
  let left = capacity - shares.reduce((sum, share) => sum + share, 0);
  // Each round fills at least one app to the brim, so there are no more rounds than apps.
  for (let round = 0; round < claims.length && left > 0; round++) {
    const rooms = claims.map(({ demand, burst }, i) => Math.min(demand, burst) - shares[i]!);
    let weights = 0;
    for (const [i, { weight }] of claims.entries()) if (rooms[i]! > 0) weights += weight;
    if (weights === 0) break;
    let rise = left / weights;
    for (const [i, { weight }] of claims.entries()) {
      if (rooms[i]! > 0) rise = Math.min(rise, rooms[i]! / weight);
    }
    for (const [i, { weight }] of claims.entries()) {
      if (rooms[i]! <= 0) continue;
      const given = Math.min(rooms[i]!, rise * weight);
      shares[i]! += given;
      left -= given;
    }
  }
  return shares;
}
