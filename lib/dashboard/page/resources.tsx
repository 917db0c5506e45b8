import { isEnding, ruleTitle } from '../../observability/alerts/alert-words.js';
import { type PageFrame } from '../frame.js';
import { Card, Empty, MoreButton } from './card.js';
import { byName, ms, percent, plural, shown } from './format.js';
import { seriesOf } from './rates.js';

export type ResourceRow = ReturnType<typeof resourceRows>[number];

/** All that is known of each resource, on all nodes and on the one that tells. */
export function resourceRows(frame: PageFrame) {
  return frame.state.resources.map((state) => {
    const series = seriesOf(frame, `resource:${state.resource}`);
    const own = frame.resources.find((one) => one.resource === state.resource);
    // Those that fire come first; of one that ends nothing is to be seen here any more.
    const alert = frame.state.alerts.find(
      (one) =>
        one.series === `resource:${state.resource}` && one.state === 'firing' && !isEnding(one),
    );
    const openOn = frame.nodes
      .filter(({ open }) => open?.includes(state.resource))
      .map(({ node }) => shown(node))
      .sort(byName);
    return { ...state, series, own, alert, openOn, level: worstLevel(series?.degraded) };
  });
}

/** The worst that is given now. */
function worstLevel(levels: readonly number[] = []): number {
  for (let level = 4; level > 0; level--) if ((levels[level - 1] ?? 0) >= 0.05) return level;
  return 0;
}

const CAUSES: Readonly<Record<string, string>> = {
  errors: 'too many errors',
  slow: 'too slow',
  breaker: 'its breaker has opened',
  overload: 'too much to do',
  operator: 'by an operator',
  relapse: 'the last try failed',
};

export function resourceText(row: ResourceRow, nodeCount: number): string {
  const state = stateText(row, nodeCount);
  return row.alert === undefined ? state : `${state} · alert: ${ruleTitle(row.alert.rule)}`;
}

function stateText(row: ResourceRow, nodeCount: number): string {
  const { own, series, openOn, openNodes } = row;
  const isNamed = openOn.length === openNodes && openNodes < 4;
  const where = isNamed ? openOn.join(', ') : plural(openNodes, 'node');
  const breaker =
    openNodes > 0 ? `breaker ${row.breaker}${nodeCount > 1 ? ` on ${where}` : ''}` : '';
  const cause = own?.cause ? `: ${CAUSES[own.cause] ?? own.cause}` : '';
  switch (row.phase) {
    case 'degraded':
      return ['degraded' + cause, breaker].filter(Boolean).join(', ');
    case 'probing':
      return ['asks whether it is back', breaker].filter(Boolean).join(', ');
    case 'ramp':
      return `on the way back, ${row.percent ?? 0} % of the requests`;
    case 'forced':
      return 'held by an operator';
    case 'disabled':
      return 'never degraded, by an operator';
    default: {
      const normal = row.alert === undefined ? 'normal' : 'normal again';
      // As of requests over their limit, or of the seconds before it was normal.
      const lately = row.level > 0 ? `, lately some answers of level ${row.level}` : '';
      const p99 = series?.p99Ms === undefined ? '' : ` · p99 ${ms(series.p99Ms)}`;
      return breaker || normal + lately + p99;
    }
  }
}

/** Only on the way back. */
export function Ramp({ row }: { readonly row: ResourceRow }) {
  if (row.phase !== 'ramp') return null;
  const now = row.percent ?? 0;
  const stages = row.own?.stages ?? [];
  const steps = stages.length > 0 ? stages : [10, 30, 50, 100];
  return (
    <div class="ramp" role="img" aria-label={`${now} % of the requests reach it`}>
      {steps.map((stage) => (
        <div key={stage}>
          <i class={stage < now ? 'on' : stage === now ? 'now' : ''} />
          <span>{stage} %</span>
        </div>
      ))}
    </div>
  );
}

const MOST_SHARES = [0.05, 0.01, 0.001, 0.0001];
export const LEVEL_NAMES = ['shared cache', 'process cache', 'simplified', 'default'];

export function ResourcesCard({ frame }: { readonly frame: PageFrame }) {
  const worst = resourceRows(frame).sort((a, b) => b.level - a.level || rank(b) - rank(a));
  const total = seriesOf(frame, 'total');
  return (
    <Card
      id="resources"
      title="Resources"
      note="level of answers, and the way back"
      side={<MoreButton to="resources" text="All resources" />}
    >
      {worst.length === 0 ? (
        <Empty title="Nothing is protected or degraded here.">
          <code>@Protect('database')</code> guards a call, <code>@Degrade</code> answers when it
          fails.
        </Empty>
      ) : (
        <ul class="resource-list">
          {worst.slice(0, 5).map((row) => (
            <li key={row.resource}>
              <div>
                <LevelMark level={row.level} isOdd={rank(row) > 0} />
                <b>{shown(row.resource)}</b>
                <span>{resourceText(row, frame.state.nodeCount)}</span>
              </div>
              <Ramp row={row} />
            </li>
          ))}
        </ul>
      )}
      {worst.length > 0 && (
        <>
          <h3 class="sub">
            Share of all answers <span>the mark is where an alert fires</span>
          </h3>
          <ul class="level-list">
            {LEVEL_NAMES.map((name, index) => {
              const part =
                total !== undefined && total.rate > 0
                  ? (total.degraded[index] ?? 0) / total.rate
                  : 0;
              const most = MOST_SHARES[index]!;
              return (
                <li key={name} class={part > most ? 'over' : ''}>
                  <span>
                    {index + 1} {name}
                  </span>
                  <div class="bar">
                    <i
                      class={part > most ? 'deny' : 'degraded'}
                      style={{ width: `${Math.min(100, (part / most) * 66)}%` }}
                    />
                    <b style={{ left: '66%' }} />
                  </div>
                  <span class="n">{percent(part)}</span>
                </li>
              );
            })}
          </ul>
        </>
      )}
    </Card>
  );
}

/** Of a normal level in green only where nothing else is odd. */
export function LevelMark({ level, isOdd }: { level: number; isOdd: boolean }) {
  const name =
    level === 0 ? 'normal answers' : `answers of level ${level}: ${LEVEL_NAMES[level - 1]}`;
  return (
    <span class={`level l${level} ${isOdd ? 'odd' : ''}`} role="img" aria-label={name} title={name}>
      {level}
    </span>
  );
}

/** 0 where nothing is odd. */
export const rank = ({ phase, breaker, alert }: ResourceRow): number =>
  (phase !== undefined && phase !== 'normal' && phase !== 'disabled' ? 4 : 0) +
  (breaker !== undefined && breaker !== 'closed' ? 2 : 0) +
  (alert === undefined ? 0 : 1);
