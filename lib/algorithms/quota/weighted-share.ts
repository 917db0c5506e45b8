/** The demand of one app and the bounds of its share, in tokens per second. */
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
  const rooms = claims.map(({ demand, burst }, i) => Math.min(demand, burst) - shares[i]!);
  const short = [...rooms.keys()].filter((i) => rooms[i]! > 0);
  let left = capacity - shares.reduce((sum, share) => sum + share, 0);
  let weights = short.reduce((sum, i) => sum + claims[i]!.weight, 0);
  // The claim that needs least for its weight is full first, and leaves the rest to the others: one pass.
  const need = rooms.map((room, i) => room / claims[i]!.weight);
  short.sort((a, b) => need[a]! - need[b]! || a - b);
  for (const i of short) {
    if (left <= 0) break;
    const { weight } = claims[i]!;
    const given = Math.min(rooms[i]!, (left * weight) / weights);
    shares[i]! += given;
    left -= given;
    weights -= weight;
  }
  return shares;
}
