import { useComputed, useSignal, useSignalEffect } from '@preact/signals';
import { type ComponentChildren } from 'preact';
import { type Alert } from '../../observability/alerts/alert.js';
import { type SeriesState } from '../../observability/state.js';
import { type PageFrame, type ShownPolicy } from '../frame.js';
import { CapacityCard } from './capacity.js';
import { Chart, Spark, type ChartData } from './charts.js';
import { Flow, FlowList, takersOf } from './flow.js';
import { ago, count, limit, ms, percent, plural, shown, span, time } from './format.js';
import {
  type ApiError,
  ask,
  frame as frameNow,
  go,
  histories,
  horizon,
  HORIZON_NAMES,
  loadHistory,
  opened,
  type Horizon,
} from './live.js';

export function Card(props: {
  readonly id: string;
  readonly title: string;
  readonly note?: ComponentChildren;
  readonly side?: ComponentChildren;
  readonly children?: ComponentChildren;
}) {
  const { id, title, note, side, children } = props;
  return (
    <section class={`card ${id}`} aria-labelledby={`h-${id}`}>
      <header>
        <h2 id={`h-${id}`}>{title}</h2>
        {note !== undefined && <p>{note}</p>}
        {side}
      </header>
      {children}
    </section>
  );
}

export const seriesOf = ({ state }: PageFrame, name: string): SeriesState | undefined =>
  state.series.find((one) => one.name === name);

const LEVELS: Readonly<Record<string, string>> = {
  good: '✓',
  info: 'i',
  warning: '!',
  bad: '!',
};

/** What matters most, in one sentence, and five figures. */
export function VerdictBar({ frame }: { readonly frame: PageFrame }) {
  const { verdict, state, inProcess } = frame;
  const total = seriesOf(frame, 'total');
  const store = seriesOf(frame, 'store');
  const degraded = (total?.degraded ?? []).reduce((sum, one) => sum + one, 0);
  return (
    <section class={`verdict ${verdict.level}`} aria-label="In one sentence">
      <span class="mark" aria-hidden="true">
        {LEVELS[verdict.level]}
      </span>
      <div class="say">
        <strong>{verdict.text}</strong>
        {verdict.why !== undefined && <span>{sentence(verdict.why)}</span>}
        {verdict.why === undefined && <span>{secondSentence(frame)}</span>}
      </div>
      <dl class="facts">
        <Fact name="Decisions" value={count(total?.rate ?? 0)} unit="/s" />
        <Fact
          name="Denied"
          value={count(total?.denied ?? 0)}
          unit="/s"
          tone={(total?.denied ?? 0) >= 0.05 ? 'deny' : ''}
        />
        <Fact
          name="Degraded"
          value={count(degraded)}
          unit="/s"
          tone={degraded >= 0.05 ? 'degraded' : ''}
        />
        <Fact
          name="In process"
          value={inProcess === null ? '–' : percent(inProcess).slice(0, -2)}
          unit={inProcess === null ? '' : '%'}
        />
        {state.store === undefined ? (
          <Fact
            name="Response p99"
            value={ms(total?.p99Ms).split(' ')[0]!}
            unit={ms(total?.p99Ms).split(' ')[1] ?? ''}
          />
        ) : (
          <Fact
            name="Redis p99"
            value={state.store.isUp ? ms(store?.p99Ms).split(' ')[0]! : 'away'}
            unit={state.store.isUp ? (ms(store?.p99Ms).split(' ')[1] ?? '') : ''}
            tone={state.store.isUp ? '' : 'deny'}
          />
        )}
      </dl>
    </section>
  );
}

const sentence = (clause: string): string =>
  `${clause.slice(0, 1).toUpperCase()}${clause.slice(1)}${/[.!?]$/.test(clause) ? '' : '.'}`;

function secondSentence({ state, storeKind, scope }: PageFrame): string {
  if (storeKind === 'memory')
    return 'The store is in memory: this is what this process alone sees.';
  if (scope === 'process')
    return 'No other process has told its figures yet: this is this process alone.';
  const firing = state.alerts.filter((alert) => alert.state === 'firing').length;
  const store = state.store?.isUp === false ? 'Redis is away' : 'Redis answers';
  return `${store}; ${firing === 0 ? 'no alert fires' : `${plural(firing, 'alert')} firing`}; ${
    state.config === undefined || state.config.behind === 0
      ? 'every node has the latest configuration'
      : `${plural(state.config.behind, 'node')} behind the latest configuration`
  }.`;
}

function Fact(props: { name: string; value: string; unit: string; tone?: string }) {
  return (
    <div>
      <dt>{props.name}</dt>
      <dd class={props.tone ? `is-${props.tone}` : ''}>
        {props.value}
        <small>{props.unit}</small>
      </dd>
    </div>
  );
}

function Legend({
  of,
}: {
  of: readonly (readonly [tone: string, name: string, value?: string])[];
}) {
  return (
    <ul class="legend">
      {of.map(([tone, name, value]) => (
        <li key={name}>
          <i class={`key ${tone}`} />
          {name}
          {value !== undefined && <b> {value}</b>}
        </li>
      ))}
    </ul>
  );
}

export function FlowCard({ frame }: { readonly frame: PageFrame }) {
  const hasQuota = frame.state.quota !== undefined;
  const isEmpty = takersOf(frame).length === 0;
  return (
    <Card
      id="flow"
      title={hasQuota ? 'Where the tokens go' : 'Where the requests go'}
      note={hasQuota ? 'tokens per second, cluster → app → node' : 'requests per second, by policy'}
      side={
        <Legend
          of={[
            ['allow', 'granted'],
            ...(hasQuota ? ([['lent', 'lent beyond the guarantee']] as const) : []),
            ['deny', 'turned away'],
          ]}
        />
      }
    >
      {isEmpty ? (
        <Empty title="Nothing has been decided yet.">
          Call a route that has <code>@RateLimit()</code>, and it shows up here within a second:{' '}
          <code>curl {location.origin}/…</code>
        </Empty>
      ) : (
        <>
          <Flow frame={frame} />
          <FlowList frame={frame} />
        </>
      )}
      {!hasQuota && !isEmpty && (
        <p class="note">
          Limits stand alone here: no app has a share of a cluster. <code>quota</code> of{' '}
          <code>RateLimitModule.forRoot</code> gives apps guarantees.
        </p>
      )}
    </Card>
  );
}

/** A table that is wider than its place; the keyboard can scroll it as well. */
export function Scroll(props: { readonly children: ComponentChildren }) {
  return (
    <div class="scroll" tabIndex={0} role="group" aria-label="Table">
      {props.children}
    </div>
  );
}

export function Empty(props: { readonly title: string; readonly children?: ComponentChildren }) {
  return (
    <div class="empty">
      <b>{props.title}</b>
      <p>{props.children}</p>
    </div>
  );
}

const RULES: Readonly<Record<string, string>> = {
  qpsRise: 'Traffic rises',
  errorRate: 'Errors',
  p99Rise: 'Answers get slower',
  denialRise: 'Denials rise',
  peak: 'Peak near the capacity',
  storeAway: 'Redis is away',
  overload: 'Cluster is overloaded',
  line: 'Requests stand in line',
  breakerOpen: 'Breaker is open',
  levelHeld: 'Answers stay reduced',
  relapse: 'Falls back again and again',
  nodeSilent: 'Node is silent',
  configBehind: 'Configuration is behind',
};
const ruleTitle = (rule: string): string =>
  RULES[rule] ?? (rule.startsWith('degraded') ? `Degraded answers, level ${rule.at(-1)}` : rule);

export function AlertsCard({ frame }: { readonly frame: PageFrame }) {
  const { alerts, learning } = frame.state;
  const number = (state: Alert['state']): number =>
    alerts.filter((alert) => alert.state === state).length;
  const [firing, pending] = [number('firing'), number('pending')];
  const note =
    firing + pending === 0
      ? 'none firing'
      : `${firing} firing${pending > 0 ? `, ${pending} pending` : ''}`;
  return (
    <Card id="alerts" title="Alerts" note={note}>
      {/* Only changes are read out: the list changes when an alert does. */}
      <ol class="alert-list" aria-live="polite" aria-relevant="additions text">
        {alerts.slice(0, 4).map((alert) => (
          <AlertRow
            key={alert.fingerprint + alert.state}
            alert={alert}
            nowMs={frame.nowMs}
            canWrite={frame.canWrite}
          />
        ))}
      </ol>
      {alerts.length === 0 && (
        <p class="note">
          {learning === undefined
            ? 'Nothing is out of the usual.'
            : `Learning what is usual: ${learning.minutes} of ${learning.needed} min. Until then only states alert.`}
        </p>
      )}
      <StorePart frame={frame} />
    </Card>
  );
}

function AlertRow({ alert, nowMs, canWrite }: { alert: Alert; nowMs: number; canWrite: boolean }) {
  const said = useSignal('');
  const since = alert.state === 'resolved' ? (alert.endedMs ?? alert.sinceMs) : alert.sinceMs;
  const when =
    alert.state === 'resolved'
      ? `over, ${ago(nowMs - since)}`
      : `${alert.state}, ${span(nowMs - since)}`;
  const mute = (): void => {
    const rule = alert.rule.split('.')[0];
    ask('mute', { rule, series: alert.series, minutes: 60 }).then(
      () => (said.value = 'muted for an hour'),
      (error: ApiError) => (said.value = error.message),
    );
  };
  return (
    <li>
      <span class={`dot ${alert.state}`} role="img" aria-label={alert.state} />
      <b>{ruleTitle(alert.rule)}</b>
      <span class="when">{alert.muted ? `${when}, muted` : when}</span>
      <p>
        {shown(alert.text)}
        {said.value !== '' && ` (${said.value})`}{' '}
        {canWrite && alert.state === 'firing' && !alert.muted && said.value === '' && (
          <button class="plain" onClick={mute}>
            Mute for an hour
          </button>
        )}
      </p>
    </li>
  );
}

const SECONDS_KEPT = 120;

function StorePart({ frame }: { readonly frame: PageFrame }) {
  const { store, nodeCount } = frame.state;
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
  const points = recent.value.slice(-80);
  return (
    <div class="store">
      <h3>
        Redis{' '}
        {store.awayNodes === 0 ? (
          <span class="chip ok">answers</span>
        ) : (
          <span class="chip bad">
            {store.isUp ? `away for ${plural(store.awayNodes, 'node')}` : 'away'}
          </span>
        )}
      </h3>
      {store.isUp ? (
        <Spark
          values={points.map(({ storeP99 }) => storeP99)}
          label={`Time of calls to Redis in the last two minutes, p99: ${ms(series?.p99Ms)} now`}
        />
      ) : (
        <p class="note">
          {plural(store.awayNodes, 'node')} of {nodeCount} decide by themselves, with their share of
          the limits
          {store.sinceMs === undefined ? '' : `, since ${time(store.sinceMs)}`}. Nothing is lost:
          they settle when it is back.
        </p>
      )}
      <dl class="pairs">
        <div>
          <dt>answers in</dt>
          <dd>
            p50 {ms(series?.p50Ms)} · p99 {ms(series?.p99Ms)}
          </dd>
        </div>
        <div>
          <dt>calls</dt>
          <dd>
            {count(series?.rate ?? 0)}/s for {count(total?.rate ?? 0)} requests/s
          </dd>
        </div>
        <div>
          <dt>failures</dt>
          <dd>{(series?.errors ?? 0) === 0 ? 'none' : `${count(series!.errors)}/s`}</dd>
        </div>
        <div>
          <dt>shared by</dt>
          <dd>{plural(nodeCount, 'node')}</dd>
        </div>
      </dl>
    </div>
  );
}

interface Point {
  readonly at: number;
  readonly allowed: number | null;
  readonly degraded: number | null;
  readonly denied: number | null;
  readonly storeP99: number | null;
}

/** The last two minutes, from what was kept and from each frame since. */
const recent = { value: [] as Point[] };

export function keep(frame: PageFrame): void {
  const total = seriesOf(frame, 'total');
  const degraded = (total?.degraded ?? []).reduce((sum, one) => sum + one, 0);
  const [rate, denied] = [total?.rate ?? 0, total?.denied ?? 0];
  recent.value.push({
    at: frame.nowMs / 1000,
    allowed: Math.max(0, rate - denied - degraded),
    degraded,
    denied: Math.max(0, denied - degraded) + 0,
    storeP99: seriesOf(frame, 'store')?.p99Ms ?? null,
  });
  if (recent.value.length > SECONDS_KEPT + 5) recent.value.shift();
}

const SPANS: Readonly<Record<Horizon, number>> = {
  seconds: 120,
  minutes: 180 * 60,
  hours: 168 * 3600,
};

/** What was kept, in front of what was seen since. */
function chartData(of: Horizon, name: string): ChartData {
  const kept = histories.value.get(`${name} ${of}`);
  const columns: { [K in keyof ChartData]: (number | null)[] } = {
    at: [],
    allowed: [],
    degraded: [],
    denied: [],
  };
  const points = of === 'seconds' && name === 'total' ? recent.value : [];
  const firstAt = points[0]?.at ?? Infinity;
  kept?.rate.forEach((rate, index) => {
    const at = (kept.startMs + (index + 0.5) * kept.stepMs) / 1000;
    if (at >= firstAt) return;
    const [denied, degraded] = [kept.denied[index] ?? null, kept.degraded[index] ?? null];
    columns.at.push(at);
    columns.allowed.push(
      rate === null ? null : Math.max(0, rate - (denied ?? 0) - (degraded ?? 0)),
    );
    columns.degraded.push(degraded);
    columns.denied.push(denied === null ? null : Math.max(0, denied - (degraded ?? 0)));
  });
  for (const point of points) {
    columns.at.push(point.at);
    columns.allowed.push(point.allowed);
    columns.degraded.push(point.degraded);
    columns.denied.push(point.denied);
  }
  return columns as ChartData;
}

const REFRESH_MS: Readonly<Record<Horizon, number>> = {
  seconds: Infinity,
  minutes: 60_000,
  hours: 300_000,
};

/** The charts of a series; of all requests unless it is another. */
export function RateCharts({ frame, name = 'total' }: { frame: PageFrame; name?: string }) {
  const loadedMs = useSignal(0);
  const loadedFor = useSignal('');
  useSignalEffect(() => {
    const of = horizon.value;
    const now = frameNow.value?.nowMs ?? 0;
    const isOld = now - loadedMs.peek() > (name === 'total' ? REFRESH_MS[of] : 5000);
    if (loadedFor.peek() === `${name} ${of}` && !isOld) return;
    loadedFor.value = `${name} ${of}`;
    loadedMs.value = now;
    void loadHistory(name, of);
  });
  const data = useComputed(() => {
    void frameNow.value;
    return chartData(horizon.value, name);
  });
  const { capacity } = frame.state.quota ?? {};
  const total = seriesOf(frame, name);
  const shownData = data.value;
  const isEmpty = shownData.at.length < 2;
  if (isEmpty) {
    return (
      <Empty title="No figures for this span yet.">
        They are kept from now on: {HORIZON_NAMES[horizon.value]} back at most.
      </Empty>
    );
  }
  const all = `${shown(name)}: ${count(total?.rate ?? 0)} a second now, ${count(total?.denied ?? 0)} of them denied`;
  const marks = frame.state.marks.filter(({ kind }) => kind !== 'quota');
  return (
    <>
      <Chart
        part="all"
        data={shownData}
        height={150}
        capacity={name === 'total' ? capacity : undefined}
        marks={marks}
        spanSeconds={SPANS[horizon.value]}
        label={all}
      />
      <h3 class="sub">
        Of these, not answered normally <span>on its own scale</span>
      </h3>
      <Chart
        part="troubled"
        data={shownData}
        height={120}
        marks={marks}
        spanSeconds={SPANS[horizon.value]}
        label={`Denied or degraded: ${count(total?.denied ?? 0)} a second denied now`}
      />
      <AsTable data={shownData} />
    </>
  );
}

function AsTable({ data }: { data: ChartData }) {
  const isOpen = useSignal(false);
  const step = Math.max(1, Math.floor(data.at.length / 12));
  const rows = data.at.map((_, index) => index).filter((index) => index % step === 0);
  const text = (value: number | null | undefined): string =>
    value === null || value === undefined ? 'no data' : count(value);
  return (
    <details class="as-table" onToggle={(event) => (isOpen.value = event.currentTarget.open)}>
      <summary>Show as table</summary>
      {isOpen.value && (
        <table>
          <thead>
            <tr>
              <th scope="col">Time</th>
              <th scope="col" class="n">
                Allowed/s
              </th>
              <th scope="col" class="n">
                Degraded/s
              </th>
              <th scope="col" class="n">
                Denied/s
              </th>
            </tr>
          </thead>
          <tbody>
            {rows.map((index) => (
              <tr key={index}>
                <td>{new Date(data.at[index]! * 1000).toLocaleTimeString('en-GB')}</td>
                <td class="n">{text(data.allowed[index])}</td>
                <td class="n">{text(data.degraded[index])}</td>
                <td class="n">{text(data.denied[index])}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </details>
  );
}

function DecisionsCard({ frame }: { readonly frame: PageFrame }) {
  const total = seriesOf(frame, 'total');
  const degraded = (total?.degraded ?? []).reduce((sum, one) => sum + one, 0);
  const [rate, denied] = [total?.rate ?? 0, total?.denied ?? 0];
  return (
    <Card
      id="rate"
      title="Decisions"
      note={`per second, last ${HORIZON_NAMES[horizon.value]}`}
      side={
        <Legend
          of={[
            ['allow', 'allowed', `${count(Math.max(0, rate - denied))}/s`],
            ['degraded', 'degraded', `${count(degraded)}/s`],
            ['deny', 'denied', `${count(Math.max(0, denied - degraded))}/s`],
          ]}
        />
      }
    >
      <RateCharts frame={frame} />
    </Card>
  );
}

interface LimitedRow {
  readonly key: string;
  readonly isKey: boolean;
  readonly policy: string;
  readonly why: string;
  readonly perMinute: number;
}

export const limitOf = (policies: readonly ShownPolicy[], name: string): string => {
  const found = policies.find((one) => one.name === name);
  return found === undefined ? '–' : limit(found.capacity, found.windowMs);
};

function limitedRows({ state, policies }: PageFrame): LimitedRow[] {
  const { quota, deniedKeys } = state;
  const apps = (quota?.apps ?? [])
    .filter(({ denied }) => denied >= 0.05)
    .map(({ app, denied, demand, used, burst }): LimitedRow => {
      const isAtCeiling = (demand ?? used + denied) >= burst * 0.95;
      const why = isAtCeiling
        ? `over its ceiling of ${count(burst)}/s`
        : quota!.overloaded
          ? 'the cluster is full'
          : 'over its guarantee, nothing left to lend';
      return { key: shown(app), isKey: false, policy: 'app quota', why, perMinute: denied * 60 };
    });
  const keys = deniedKeys.map(({ policy, key, denied }): LimitedRow => {
    const why = `more than ${limitOf(policies, policy)} by this key`;
    return { key: shown(key), isKey: true, policy: shown(policy), why, perMinute: denied };
  });
  return [...apps, ...keys].sort((one, other) => other.perMinute - one.perMinute).slice(0, 8);
}

function KeysCard({ frame }: { readonly frame: PageFrame }) {
  const rows = limitedRows(frame);
  const most = Math.max(1, ...rows.map(({ perMinute }) => perMinute));
  return (
    <Card id="keys" title="Who is limited" note="denied in about the last minute; keys as hashes">
      {rows.length === 0 ? (
        <Empty title="Nobody is turned away.">
          When somebody is, the busiest ten are listed here, with the reason.
        </Empty>
      ) : (
        <Scroll>
          <table>
            <thead>
              <tr>
                <th scope="col">Who</th>
                <th scope="col">Limit</th>
                <th scope="col">Why</th>
                <th scope="col" class="n">
                  Denied
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map(({ key, isKey, policy, why, perMinute }) => (
                <tr key={`${policy} ${key}`}>
                  <td>{isKey ? <code>{key.slice(0, 24)}</code> : <b>{key}</b>}</td>
                  <td>{policy}</td>
                  <td class="why">{why}</td>
                  <td class="n heat">
                    {count(perMinute)}
                    <i style={{ width: `${100 * Math.sqrt(perMinute / most)}%` }} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
      <Look />
    </Card>
  );
}

interface Looked {
  readonly policies: readonly {
    readonly policy: string;
    readonly allowed: boolean;
    readonly remaining: number;
    readonly limit: number;
    readonly retryAfterMs: number;
  }[];
}

/** Why is this one limited? */
function Look() {
  const key = useSignal('');
  const found = useSignal<Looked | undefined>(undefined);
  const fault = useSignal('');
  const look = (event: Event): void => {
    event.preventDefault();
    if (key.value.trim() === '') return;
    ask<Looked>('look', { key: key.value.trim() }).then(
      (answer) => {
        fault.value = '';
        found.value = answer;
      },
      (error: ApiError) => {
        found.value = undefined;
        fault.value = error.message;
      },
    );
  };
  const limited = found.value?.policies.filter(({ allowed }) => !allowed) ?? [];
  return (
    <form class="look" onSubmit={look}>
      <label for="look">Why is this one limited?</label>
      <div>
        <input
          id="look"
          value={key.value}
          onInput={(event) => (key.value = event.currentTarget.value)}
          placeholder="user, address or API key"
          autocomplete="off"
          spellcheck={false}
        />
        <button class="ghost">Look</button>
      </div>
      <div role="status" class="looked">
        {fault.value !== '' && <p class="is-deny">{fault.value}</p>}
        {found.value !== undefined && limited.length === 0 && (
          <p>
            No policy turns it away now: it has tokens of all {found.value.policies.length} that
            were asked.
          </p>
        )}
        {limited.map(({ policy, limit: most, retryAfterMs }) => (
          <p key={policy}>
            <b>{shown(policy)}</b> has no token left of {count(most)}; the next comes in{' '}
            {ms(retryAfterMs)}.
          </p>
        ))}
        {found.value?.policies
          .filter(({ allowed }) => allowed)
          .slice(0, 3)
          .map(({ policy, remaining, limit: most }) => (
            <p key={policy} class="dim">
              {shown(policy)}: {count(remaining)} of {count(most)} left
            </p>
          ))}
      </div>
    </form>
  );
}

function PoliciesCard({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.state.series
    .filter(({ name }) => name.startsWith('policy:'))
    .sort((a, b) => b.denied - a.denied || b.rate - a.rate)
    .slice(0, 7);
  return (
    <Card
      id="policies"
      title="Policies"
      note="busiest first; the bar is the part that is denied"
      side={<MoreButton to="policies" text="All policies" />}
    >
      {rows.length === 0 ? (
        <Empty title="No policy has decided yet.">
          A policy is a limit by key: <code>@RateLimit('login-ip')</code>.
        </Empty>
      ) : (
        <Scroll>
          <table>
            <thead>
              <tr>
                <th scope="col">Policy</th>
                <th scope="col">Limit</th>
                <th scope="col" class="n">
                  Asked/s
                </th>
                <th scope="col">Denied</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((series) => (
                <PolicyRow key={series.name} series={series} policies={frame.policies} />
              ))}
            </tbody>
          </table>
        </Scroll>
      )}
    </Card>
  );
}

function PolicyRow({
  series,
  policies,
}: {
  series: SeriesState;
  policies: readonly ShownPolicy[];
}) {
  const name = series.name.slice(7);
  const policy = policies.find((one) => one.name === name);
  return (
    <tr>
      <td>
        {shown(name)}
        {policy?.shadow === true && <span class="tag">watches only</span>}
      </td>
      <td class="why">{limitOf(policies, name)}</td>
      <td class="n">{count(series.rate)}</td>
      <td>
        <Share part={series.rate > 0 ? series.denied / series.rate : 0} />
      </td>
    </tr>
  );
}

export function Share({ part }: { part: number }) {
  const tone = part > 0.05 ? 'deny' : part > 0.005 ? 'degraded' : '';
  return (
    <div class="use">
      <div class="bar">
        <i class={tone} style={{ width: `${Math.min(100, part * 100)}%` }} />
      </div>
      <span>{percent(part)}</span>
    </div>
  );
}

export function MoreButton({
  to,
  text,
}: {
  to: 'policies' | 'fleet' | 'resources' | 'config' | 'capacity';
  text: string;
}) {
  return (
    <button class="plain more" onClick={() => go(to)}>
      {text}
    </button>
  );
}

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

function ResourcesCard({ frame }: { readonly frame: PageFrame }) {
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

function FleetCard({ frame }: { readonly frame: PageFrame }) {
  const { nodes, state, seenFrom } = frame;
  const revision = state.config?.revision ?? 0;
  const behind = nodes.filter((node) => !node.isSilent && node.revision < revision);
  const silent = nodes.filter(({ isSilent }) => isSilent);
  const most = Math.max(1, ...nodes.map(({ rate }) => rate));
  const onIt = nodes.length - behind.length - silent.length;
  const note = `${plural(state.nodeCount, 'node')}${revision > 0 ? `, ${onIt} on revision ${revision}` : ''}`;
  return (
    <Card id="fleet" title="Fleet" note={note} side={<MoreButton to="fleet" text="All nodes" />}>
      <ul class="node-list">
        {[...nodes]
          .sort(
            (a, b) =>
              Number(b.isSilent) - Number(a.isSilent) ||
              a.node.localeCompare(b.node, 'en', { numeric: true }),
          )
          .slice(0, 12)
          .map((node) => (
            <li
              key={node.node}
              class={
                node.isSilent || !node.storeIsUp ? 'off' : node.revision < revision ? 'odd' : ''
              }
            >
              <b title={shown(node.node)}>{shown(node.node)}</b>
              <span>
                {node.isSilent
                  ? 'silent'
                  : !node.storeIsUp
                    ? 'without Redis'
                    : node.revision < revision
                      ? `revision ${node.revision}`
                      : `${count(node.rate)}/s`}
              </span>
              <div class="bar">
                <i style={{ width: `${(100 * node.rate) / most}%` }} />
              </div>
            </li>
          ))}
      </ul>
      {behind.length > 0 && (
        <p class="note">
          <b>{shown(behind[0]!.node)}</b>
          {behind.length > 1 ? ` and ${behind.length - 1} more have` : ' has'} not applied revision{' '}
          {revision} yet.{' '}
          <button class="plain" onClick={() => go('config')}>
            Look why
          </button>
        </p>
      )}
      {silent.length > 0 && (
        <p class="note">
          <b>{shown(silent[0]!.node)}</b> has said nothing for a while and did not say goodbye: look
          whether it still runs.
        </p>
      )}
      {behind.length + silent.length === 0 && (
        <p class="note">
          {frame.scope === 'fleet'
            ? `Seen from ${shown(seenFrom)}; any node can show all.`
            : `Seen from ${shown(seenFrom)} alone.`}
        </p>
      )}
    </Card>
  );
}

function OverloadCard({ frame }: { readonly frame: PageFrame }) {
  const { overload } = frame;
  if (overload === null) return null;
  const most = Math.max(
    1,
    ...overload.tiers.map(({ ran, waited, refused }) => ran + waited + refused),
  );
  const note = overload.standing
    ? `the loop has no rest: ${plural(overload.waiting, 'request')} wait, highest tier first`
    : 'the loop has rest; nobody waits for long';
  return (
    <Card
      id="overload"
      title="Overload of this process"
      note={note}
      side={
        <span class={`chip ${overload.standing ? 'bad' : 'ok'}`}>
          {overload.standing ? 'in line' : 'at ease'}
        </span>
      }
    >
      <div class="overload-body">
        <ul class="tier-list">
          {overload.tiers.map(({ tier, ran, waited, refused }) => (
            <li key={tier}>
              <b>{shown(tier)}</b>
              <div
                class="stack"
                role="img"
                aria-label={`${shown(tier)}: ${count(ran)} ran at once, ${count(waited)} after a wait, ${count(refused)} refused, per second`}
              >
                <i class="allow" style={{ width: `${(100 * ran) / most}%` }} />
                <i class="degraded" style={{ width: `${(100 * waited) / most}%` }} />
                <i class="deny" style={{ width: `${(100 * refused) / most}%` }} />
              </div>
              <span>
                {count(ran + waited)}/s{refused >= 0.05 ? `, ${count(refused)}/s refused` : ''}
              </span>
            </li>
          ))}
        </ul>
        <dl class="pairs">
          <div>
            <dt>in line</dt>
            <dd>{count(overload.waiting)}</dd>
          </div>
          <div>
            <dt>under way</dt>
            <dd>{count(overload.inFlight)}</dd>
          </div>
          <div>
            <dt>turn of the loop</dt>
            <dd>{ms(overload.turnMs)}</dd>
          </div>
          <div>
            <dt>adaptive limits</dt>
            <dd>{percent(overload.factor)}</dd>
          </div>
        </dl>
      </div>
    </Card>
  );
}

function ChangeCard({ frame }: { readonly frame: PageFrame }) {
  const { change, state, nowMs } = frame;
  if (change === null) return null;
  const behind = state.config?.behind ?? 0;
  const written =
    change.atMs === null
      ? ''
      : `, ${ago(nowMs - change.atMs)}${change.by === null ? '' : ` by ${shown(change.by)}`}`;
  return (
    <Card
      id="change"
      title="Configuration"
      note={change.revision === 0 ? 'as the code has it' : `revision ${change.revision}${written}`}
      side={<MoreButton to="config" text={frame.canWrite ? 'Look and change' : 'Look'} />}
    >
      <dl class="pairs">
        <div>
          <dt>last change</dt>
          <dd>
            {change.paths.length === 0
              ? (change.kind ?? 'none yet')
              : change.paths.slice(0, 3).map(shown).join(', ')}
          </dd>
        </div>
        <div>
          <dt>profile</dt>
          <dd>{shown(change.profile)}</dd>
        </div>
        <div>
          <dt>reached</dt>
          <dd>
            {behind === 0
              ? 'all nodes'
              : `${state.nodeCount - behind} of ${plural(state.nodeCount, 'node')}`}
          </dd>
        </div>
        <div>
          <dt>waiting for their time</dt>
          <dd>{change.staged === 0 ? 'none' : plural(change.staged, 'change')}</dd>
        </div>
      </dl>
    </Card>
  );
}

/** The buttons that the application has put here. */
function ActionBar({ frame }: { readonly frame: PageFrame }) {
  const chosen = useSignal<string | null>(null);
  const said = useSignal('');
  if (!frame.canWrite || frame.actions.length === 0) return null;
  const run = (name: string): void => {
    chosen.value = name;
    said.value = '';
    ask<{ said: string }>(`actions/${encodeURIComponent(name)}`, {}).then(
      (answer) => chosen.value === name && (said.value = answer.said),
      (error: ApiError) => chosen.value === name && (said.value = error.message),
    );
  };
  const action = frame.actions.find(({ name }) => name === chosen.value);
  return (
    <section class="action-bar" aria-label="Try it">
      <div class="actions">
        <b>Try it</b>
        {frame.actions.map(({ name, text }) => (
          <button
            key={name}
            class="ghost"
            title={text}
            aria-pressed={name === chosen.value}
            onClick={() => run(name)}
          >
            {name}
          </button>
        ))}
      </div>
      <p role="status">
        {action === undefined ? (
          'Each button makes something happen for a while; what to look at is told here.'
        ) : (
          <>
            {action.text} {said.value}{' '}
            {action.link !== null && (
              <a href={action.link} target="_blank" rel="noreferrer">
                The code
              </a>
            )}
          </>
        )}
      </p>
    </section>
  );
}

export function Overview({ frame }: { readonly frame: PageFrame }) {
  void opened.value;
  return (
    <>
      <ActionBar frame={frame} />
      <VerdictBar frame={frame} />
      <FlowCard frame={frame} />
      <AlertsCard frame={frame} />
      <DecisionsCard frame={frame} />
      <KeysCard frame={frame} />
      <PoliciesCard frame={frame} />
      <ResourcesCard frame={frame} />
      <FleetCard frame={frame} />
      <OverloadCard frame={frame} />
      <ChangeCard frame={frame} />
      <CapacityCard frame={frame} />
    </>
  );
}
