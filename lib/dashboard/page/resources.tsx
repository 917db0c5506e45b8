import { type PageFrame } from '../frame.js';
import { Card, Empty, MoreButton } from './card.js';
import { ms, percent, plural, shown } from './format.js';
import { seriesOf } from './rates.js';

/** The level of a resource's answers now: the worst that is given. */
export function levelOf(frame: PageFrame, resource: string): number {
  const series = seriesOf(frame, `resource:${resource}`);
  const levels = series?.degraded ?? [0, 0, 0, 0];
  for (let level = 4; level > 0; level--) if (levels[level - 1]! >= 0.05) return level;
  return 0;
}

export function resourceText(frame: PageFrame, resource: string): string {
  const state = frame.state.resources.find((one) => one.resource === resource);
  const own = frame.resources.find((one) => one.resource === resource);
  const series = seriesOf(frame, `resource:${resource}`);
  const breaker =
    state?.breaker === 'open'
      ? `breaker open${frame.state.nodeCount > 1 ? ` on ${plural(state.openNodes, 'node')}` : ''}`
      : state?.breaker === 'half-open'
        ? 'breaker tries again'
        : '';
  const cause = own?.cause === null || own?.cause === undefined ? '' : `: ${own.cause}`;
  switch (state?.phase) {
    case 'degraded':
      return ['degraded' + cause, breaker].filter(Boolean).join(', ');
    case 'probing':
      return ['asks whether it is back', breaker].filter(Boolean).join(', ');
    case 'ramp':
      return `on the way back, ${state.percent ?? 0} % of the requests`;
    case 'forced':
      return 'held by an operator';
    case 'disabled':
      return 'never degraded, by an operator';
    default:
      return breaker || `normal${series?.p99Ms === undefined ? '' : ` · p99 ${ms(series.p99Ms)}`}`;
  }
}

export function Ramp({ stages, percent: now }: { stages: readonly number[]; percent: number }) {
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
const LEVEL_NAMES = ['shared cache', 'process cache', 'simplified', 'default'];

export function ResourcesCard({ frame }: { readonly frame: PageFrame }) {
  const { resources } = frame.state;
  const worst = [...resources].sort(
    (a, b) => levelOf(frame, b.resource) - levelOf(frame, a.resource) || rank(b) - rank(a),
  );
  const total = seriesOf(frame, 'total');
  return (
    <Card
      id="resources"
      title="Resources"
      note="the level of their answers, and the way back"
      side={<MoreButton to="resources" text="All resources" />}
    >
      {worst.length === 0 ? (
        <Empty title="Nothing is protected or degraded here.">
          <code>@Protect('database')</code> guards a call, <code>@Degrade</code> answers when it
          fails.
        </Empty>
      ) : (
        <ul class="resource-list">
          {worst.slice(0, 5).map(({ resource, phase, percent: now }) => (
            <li key={resource}>
              <div>
                <LevelMark level={levelOf(frame, resource)} />
                <b>{shown(resource)}</b>
                <span>{resourceText(frame, resource)}</span>
              </div>
              {phase === 'ramp' && (
                <Ramp
                  stages={frame.resources.find((one) => one.resource === resource)?.stages ?? []}
                  percent={now ?? 0}
                />
              )}
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

export function LevelMark({ level }: { level: number }) {
  const name =
    level === 0 ? 'normal answers' : `answers of level ${level}: ${LEVEL_NAMES[level - 1]}`;
  return (
    <span class={`level l${level}`} role="img" aria-label={name} title={name}>
      {level}
    </span>
  );
}

const rank = ({ phase, breaker }: PageFrame['state']['resources'][number]): number =>
  (phase !== undefined && phase !== 'normal' ? 2 : 0) + (breaker === 'open' ? 1 : 0);
