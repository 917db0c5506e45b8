import { type ExecutionContext } from '@nestjs/common';
import { nginxLimit, type RateLimitModuleInput } from 'nestjs-weir';
import { callerOf } from './caller.js';

const userTier = (context: ExecutionContext): string => callerOf(context).userTier;
const merchantTier = (context: ExecutionContext): string => callerOf(context).merchantTier;
const merchant = (context: ExecutionContext): string | undefined => callerOf(context).merchant;
const withoutMerchant = (context: ExecutionContext): boolean => merchant(context) === undefined;

/** The limits of a gateway, from the door inwards. A request must pass all that its route names. */
export const limits = {
  user: (context: ExecutionContext) => callerOf(context).user,
  policies: {
    /**
     * The door: 100 a second for each address, evenly; beside the one that goes, 20 may wait. Each
     * gateway by itself. In nginx: `limit_req_zone … rate=100r/s`, `limit_req … burst=20`.
     */
    ip: { ...nginxLimit({ rate: '100r/s', burst: 20 }), key: 'ip', scope: 'node', early: true },
    /** A hot path: 5000 a second on each gateway, 1000 more than one at once, and none that waits. */
    uri: {
      ...nginxLimit({ rate: '5000r/s', burst: 1000, nodelay: true }),
      key: 'route',
      scope: 'node',
    },
    /** Who calls. */
    user: { key: 'user', tiers: { normal: 10, vip: 50 }, defaultTier: 'normal', tier: userTier },
    /** On whose behalf. */
    merchant: {
      key: merchant,
      tiers: { normal: 100, S: 1000 },
      defaultTier: 'normal',
      tier: merchantTier,
      skipIf: withoutMerchant,
    },
    /** One merchant on one interface, in one key: nobody uses up what an interface has for all. */
    'merchant-api': {
      key: [merchant, 'route'],
      tiers: { normal: 5, S: 15 },
      defaultTier: 'normal',
      tier: merchantTier,
      skipIf: withoutMerchant,
    },
    /** What is asked for: a product that everybody wants must not slow down the others. */
    product: { algorithm: 'sliding-window', rate: 1000, key: { param: 'query.id' } },
    /** What the shop can do without when it is busy. */
    'non-core': { rate: 20, key: 'route' },
    /** Inside: queries that the database is asked at once; see the service. */
    'db-query': { rate: 500, burst: 50 },
  },
  apply: ['ip'],
} satisfies RateLimitModuleInput;
