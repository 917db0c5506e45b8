import { fileURLToPath } from 'node:url';
import { type RateLimitModuleInput } from 'nestjs-weir';
import { tierOf } from './merchants.js';

const PROFILES = fileURLToPath(new URL('../../../sample/07-flash-sale/weir.yaml', import.meta.url));

/** Normal days; what is another on the days of a promotion is in weir.yaml. */
export const settings: RateLimitModuleInput = {
  // Who is served first when there is no time for all, and who may ask how often.
  tier: ({ headers }) => tierOf(headers['x-merchant']),
  overload: { enabled: true },
  policies: {
    merchant: {
      key: { header: 'x-merchant' },
      tiers: { S: 10_000, A: 5000, B: 1000, C: 100 },
      defaultTier: 'C',
      passThrough: { S: 0.8, A: 0.5, limit: '20000/s' },
    },
    product: { rate: 1000, key: { param: 'params.id' }, hot: true },
  },
  config: { file: PROFILES },
};
