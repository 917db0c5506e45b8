import { type PageFrame } from '../frame.js';
import { Pairs } from './card.js';
import { Spark } from './charts.js';
import { count, ms, plural, shown, time, sentence } from './format.js';
import { storeJudgement, type Judgement } from './judge.js';
import { horizon, HORIZON_NAMES } from './live.js';
import { recent, seriesOf, useHistory } from './rates.js';

/** The judgement of Redis; undefined where the store is in memory. */
export function redisOf(frame: PageFrame): Judgement | undefined {
  const { state, storeTimeoutMs } = frame;
  if (state.store === undefined) return undefined;
  const { p99Ms, errors = 0 } = seriesOf(frame, 'store') ?? {};
  const timeoutMs = storeTimeoutMs ?? Infinity;
  return storeJudgement({ store: state.store, p99Ms, errors, timeoutMs });
}

export function StorePart({ frame }: { readonly frame: PageFrame }) {
  const { store, nodeCount } = frame.state;
  // No hours are kept of it.
  const { startMs = 0, stepMs = 1, p99Ms = [] } = useHistory('store', 'minutes') ?? {};
  const isNow = horizon.value === 'seconds';
  const seen = isNow ? recent : [];
  const firstSeen = ((seen[0]?.at ?? Infinity) * 1000 - startMs) / stepMs;
  const values = [
    ...p99Ms.filter((_, index) => index < firstSeen),
    ...seen.map(({ storeP99 }) => storeP99),
  ].slice(isNow ? -120 : 0);
  const series = seriesOf(frame, 'store');
  const total = seriesOf(frame, 'total');
  if (store === undefined) {
    return (
      <div class="store">
        <h3>
          Store <span class="chip">in memory</span>
        </h3>
        <p class="note">
          This process only: other processes have limits of their own.{' '}
          <code>store: &#123; type: 'redis' &#125;</code> makes them share.
        </p>
      </div>
    );
  }
  const { tone, word, why } = redisOf(frame)!;
  const away = store.sinceMs === undefined ? '' : `, since ${time(store.sinceMs)}`;
  const pairs: [string, string][] = store.isUp
    ? [
        ['answers in', `p50 ${ms(series?.p50Ms)} · p99 ${ms(series?.p99Ms)}`],
        ['calls', `${count(series?.rate ?? 0)}/s for ${count(total?.rate ?? 0)} requests/s`],
        ['failures', (series?.errors ?? 0) < 0.05 ? 'none' : `${count(series!.errors)}/s`],
        ['shared by', plural(nodeCount, 'node')],
      ]
    : [
        ['answers', `none${away}`],
        ['calls that fail', `${count(series?.errors ?? 0)}/s`],
      ];
  return (
    <div class="store">
      <h3>
        Redis{' '}
        <span class={`chip ${tone}`}>
          {store.awayNodes > 0 ? word : `answers${word && `, ${word}`}`}
        </span>
      </h3>
      {store.isUp ? (
        <>
          <Spark
            values={values}
            label={`Time of calls to Redis in the last ${HORIZON_NAMES[isNow ? 'seconds' : 'minutes']}, p99: ${ms(series?.p99Ms)} now`}
          />
          <p class="note">{sentence(why)}</p>
        </>
      ) : (
        <p class="note">
          {frame.scope === 'process'
            ? `${shown(frame.seenFrom)} decides by itself`
            : `${plural(store.awayNodes, 'node')} of ${nodeCount} decide by themselves`}
          {away}. Look at Redis; until it answers limits hold by shares, and nothing has to be done
          here.
        </p>
      )}
      <Pairs of={pairs} />
    </div>
  );
}
