import { type QuotaStatus } from '../../lib/algorithms/quota/quota-status.js';
import { type QuotaStats } from '../../lib/limiter/rate-limiter.js';
import { quotaOf } from '../../lib/observability/quota-view.js';
import { verdict } from '../../lib/observability/verdict.js';
import { quietFleet, seriesState } from './snapshots.js';

const stats = {
  apps: { search: { guaranteed: 100, burst: 1000, nodes: 3 } },
} as unknown as QuotaStats;
const series = [{ ...seriesState('app:search', 687, 187), used: 500 }];
const seen = (demand: number | undefined) => ({
  ...{ stats, document: {}, series },
  condition: { modes: new Map(), overloaded: true, denials: new Map() },
  status:
    demand === undefined
      ? undefined
      : ({ ...{ capacity: 500, demand, overloaded: true }, apps: {} } as unknown as QuotaStatus),
});

describe('what all apps ask for', () => {
  it('is what the ledger says, but no less than what was used and denied', () => {
    expect(quotaOf(seen(900))!.demand).toBe(900);
    expect(quotaOf(seen(541))!.demand).toBe(687);
  });

  it('is not known where the ledger was not read', () => {
    expect(quotaOf(seen(undefined))!.demand).toBeUndefined();
  });

  it('is the same figure in the verdict', () => {
    const quota = quotaOf(seen(541))!;
    const { text, why } = verdict(quietFleet({ quota, series }));
    expect(text).toContain('Overload: 137 % of capacity asked for.');
    expect(why).toContain('all apps together ask for 687/s of 500/s');
  });
});
