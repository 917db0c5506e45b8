export const TIERS = ['S', 'A', 'B', 'C'] as const;
export type Tier = (typeof TIERS)[number];

/** Parts of the traffic, and of the merchants. */
export const SHARES: Readonly<Record<Tier, number>> = { S: 0.05, A: 0.15, B: 0.3, C: 0.5 };
const MERCHANTS = 200;

/** The name of a merchant tells its tier; a shop would look it up. */
export function merchantOf(tier: Tier): string {
  const many = Math.round(MERCHANTS * SHARES[tier]);
  return `${tier.toLowerCase()}-${Math.floor(Math.random() * many)}`;
}

export function tierOf(merchant: unknown): Tier | undefined {
  const letter = String(merchant).charAt(0).toUpperCase();
  return TIERS.find((tier) => tier === letter);
}
