import { type RateLimitConfig } from 'nestjs-weir';
import { type DashboardAction } from 'nestjs-weir/dashboard';
import { type Stage } from './stage.js';

const CODE = 'https://github.com/nestjs-weir/nestjs-weir/blob/main/sample/00-tour';

const BURST_SECONDS = 15;
const AWAY_SECONDS = 15;
const OVERLOAD_SECONDS = 20;
const SLOW_SECONDS = 12;

export function buttonsFor(stage: Stage, config: () => RateLimitConfig): DashboardAction[] {
  return [
    {
      name: 'Burst',
      text: `Search asks for six times as much for ${BURST_SECONDS} s: its band turns red and falls over the edge, checkout keeps what it was promised.`,
      link: `${CODE}/traffic.ts`,
      run: () => stage.raise(['search'], 6, BURST_SECONDS),
    },
    {
      name: 'Store away',
      text: `Redis cannot be reached for ${AWAY_SECONDS} s: each node goes on with its share, nobody gets an error, and nothing bursts when it is back.`,
      link: `${CODE}/one-process.ts`,
      run: () => stage.takeStoreAway(AWAY_SECONDS),
    },
    {
      name: 'Overload',
      text: `All apps ask for three times as much for ${OVERLOAD_SECONDS} s: the capacity is shared by priority, and checkout loses least.`,
      link: `${CODE}/shop.module.ts`,
      run: () => stage.raise(['checkout', 'search', 'reports'], 3, OVERLOAD_SECONDS),
    },
    {
      name: 'Slow database',
      text: `The database of the product page takes a second for ${SLOW_SECONDS} s: the breaker opens, answers come from the caches, and the way back leads over 10, 30 and 50 %.`,
      link: `${CODE}/catalog.ts`,
      run: () => stage.slowDatabase(SLOW_SECONDS),
    },
    {
      name: 'Promo day',
      text: 'Switches to the profile promo: search gets more, reports less, on all nodes at once; look at the configuration and the revision of each node.',
      link: `${CODE}/buttons.ts`,
      run: async () => {
        const { revision } = await config().update(PROMO, { by: 'tour' });
        return `Revision ${revision} is written.`;
      },
    },
    {
      name: 'Undo',
      text: 'Goes back to the revision before the last one, as a new revision: the history keeps both.',
      link: `${CODE}/buttons.ts`,
      run: async () => {
        const [, before] = await config().history(2);
        if (before === undefined) return 'Nothing was changed yet.';
        const { revision } = await config().rollback(before.revision, { by: 'tour' });
        return `Revision ${revision} has what revision ${before.revision} had.`;
      },
    },
  ];
}

/** Laid over the limits of the code while it is in force. */
const PROMO = {
  profile: 'promo',
  profiles: {
    promo: {
      apps: {
        search: { guaranteed: 140, burst: 280 },
        reports: { guaranteed: 20, burst: 60 },
      },
    },
  },
};
