import { createRateLimiter, type Decision } from 'nestjs-weir';
import { atMost } from '../../support/bars.js';
import { underLoad } from '../../support/paced-load.js';
import { withRedisUsage } from '../../support/redis-usage.js';
import { median } from '../../support/statistics.js';
import { type SuiteContext, type SuiteReport } from '../../support/suite.js';
import { type OnRedis } from './shared-decisions.js';

const LOAD = { perSecond: 20_000, durationMs: 1500, graceMs: 50 };
const WARM_UP = { ...LOAD, durationMs: 500 };
const CASE = `${LOAD.perSecond.toLocaleString('en')} decisions/s of one process`;
const MOST_CALLS = 1;
const CALLS = 'Redis calls/1,000 decisions';

/** A steady load well within the guarantee: how rarely does it take a call? */
export async function storeCalls(
  { url, observer }: OnRedis,
  context: SuiteContext,
): Promise<SuiteReport> {
  const limiter = createRateLimiter({
    store: { type: 'redis', url, prefix: 'calls' },
    quota: {
      cluster: { capacity: 1_000_000 },
      apps: { only: { guaranteed: 100_000, burst: 500_000, priority: 0 } },
    },
  });
  const sources = { local: 0, store: 0, fallback: 0 };
  const ask = async (): Promise<void> => {
    const answer: Decision | Promise<Decision> = limiter.tryAcquire({ app: 'only' });
    const decision = answer instanceof Promise ? await answer : answer;
    sources[decision.source]++;
  };
  const figures: Record<string, number[]> = { [CALLS]: [], 'decided locally, %': [] };
  try {
    await limiter.ready();
    await underLoad(WARM_UP, ask);
    for (let round = 0; round < context.rounds; round++) {
      context.progress(CASE, `round ${round + 1} of ${context.rounds}`);
      Object.assign(sources, { local: 0, store: 0, fallback: 0 });
      const { result, usage } = await withRedisUsage(observer, () => underLoad(LOAD, ask));
      if (sources.fallback > 0.01 * result.issued) {
        throw new Error(`weir decided ${sources.fallback} requests without Redis`);
      }
      figures[CALLS]!.push((usage.scriptCalls * 1000) / result.issued);
      figures['decided locally, %']!.push((sources.local * 100) / result.issued);
    }
  } finally {
    await limiter.close();
  }
  return {
    series: Object.entries(figures).map(([metric, values]) => ({
      ...{ case: CASE, contender: 'weir quota', metric, values },
    })),
    bars: [atMost(`${CASE}: ≤ ${MOST_CALLS} ${CALLS}`, median(figures[CALLS]!), MOST_CALLS)],
  };
}
