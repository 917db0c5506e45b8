import { signal, useSignal } from '@preact/signals';
import { type Alert } from '../../observability/alerts/alert.js';
import {
  alertCounts,
  alertText,
  byUrgency,
  inState,
  ruleTitle,
  shownState,
} from '../../observability/alerts/alert-words.js';
import { type SeriesState } from '../../observability/state.js';
import { type Looked, type LookedAt, type PageFrame, type ShownPolicy } from '../frame.js';
import { CapacityCard, Rooms } from './capacity.js';
import { lookAtBefore } from './config.js';
import { Card, Empty, Legend, MoreButton, Pairs, Share, Table } from './card.js';
import { Spark } from './charts.js';
import { Flow, FlowList, takersOf } from './flow.js';
import {
  ago,
  byName,
  clock,
  count,
  limitOf,
  ms,
  notSeen,
  percent,
  plural,
  shown,
  span,
  text,
  time,
} from './format.js';
import { denialsOf, nodeState, storeJudgement, type Judgement } from './judge.js';
import { type ApiError, ask, go, horizon, HORIZON_NAMES, opened } from './live.js';
import { degradedOf, RateCharts, recent, seriesOf } from './rates.js';
import { ResourcesCard } from './resources.js';

const LEVELS: Readonly<Record<string, string>> = {
  good: '✓',
  info: 'i',
  warning: '!',
  bad: '!',
};

/** The verdict in one sentence, and five figures. */
export function VerdictBar({ frame }: { readonly frame: PageFrame }) {
  const { verdict, state, inProcess } = frame;
  const total = seriesOf(frame, 'total');
  const store = seriesOf(frame, 'store');
  const degraded = degradedOf(total);
  const [rate, denied] = [total?.rate ?? 0, total?.denied ?? 0];
  const isAlarmed = state.alerts.some(
    (one) => one.rule === 'denialRise' && one.series === 'total' && one.state === 'firing',
  );
  const denials = denialsOf(rate, denied, frame.usual, isAlarmed);
  const redis = redisOf(frame);
  return (
    <section class={`verdict ${verdict.level}`} aria-label="In one sentence">
      <span class="mark" aria-hidden="true">
        {LEVELS[verdict.level]}
      </span>
      <div class="say">
        {/* A number and its sign stay on one line. */}
        <strong>{text(verdict.text).replaceAll(' %', '\u00a0%')}</strong>
        <span>
          {verdict.why === undefined ? secondSentence(frame) : sentence(text(verdict.why))}
          {frame.unseen !== null && ` ${text(frame.unseen.said)}`}
        </span>
      </div>
      <dl class="facts">
        <Fact name="Decisions" value={`${count(rate)} /s`} note={nodesText(frame)} />
        <Fact
          name="Denied"
          value={`${count(denied)} /s`}
          note={denials.word}
          tone={denials.tone === 'bad' ? 'deny' : ''}
        />
        <Fact
          name="Degraded"
          value={`${count(degraded)} /s`}
          note={degraded >= 0.05 ? `${percent(degraded / rate)} of all` : 'none'}
          tone={degraded >= 0.05 ? 'degraded' : ''}
        />
        <Fact
          name="In process"
          value={inProcess === null ? '–' : percent(inProcess)}
          note="without a call"
        />
        {redis === undefined ? (
          <Fact name="Response p99" value={ms(total?.p99Ms)} />
        ) : (
          <Fact
            name="Redis p99"
            value={state.store!.isUp ? ms(store?.p99Ms) : 'away'}
            note={state.store!.isUp ? redis.word : 'no answer'}
            tone={TONES[redis.tone]}
          />
        )}
      </dl>
    </section>
  );
}

const TONES: Readonly<Record<Judgement['tone'], string>> = {
  ...{ ok: '', warn: 'degraded', bad: 'deny' },
};

/** Undefined where the store is in memory. */
function redisOf(frame: PageFrame): Judgement | undefined {
  const { state, storeTimeoutMs } = frame;
  if (state.store === undefined) return undefined;
  const { p99Ms, errors = 0 } = seriesOf(frame, 'store') ?? {};
  const timeoutMs = storeTimeoutMs ?? Infinity;
  return storeJudgement({ store: state.store, p99Ms, errors, timeoutMs });
}

const nodesText = ({ unseen, state: { nodeCount } }: PageFrame): string =>
  unseen === null ? `on ${plural(nodeCount, 'node')}` : 'on this node';

const sentence = (clause: string): string =>
  `${clause.slice(0, 1).toUpperCase()}${clause.slice(1)}${/[.!?]$/.test(clause) ? '' : '.'}`;

function secondSentence({ state, storeKind, scope }: PageFrame): string {
  if (storeKind === 'memory')
    return 'The store is in memory: this is what this process alone sees.';
  if (scope === 'process')
    return 'No other process has told its figures yet: this is this process alone.';
  const store = state.store?.isUp === false ? 'Redis is away' : 'Redis answers';
  const alerts = alertCounts(state.alerts);
  return `${store}; ${alerts === '' ? 'no alert fires' : `alerts: ${alerts}`}; ${
    state.config === undefined || state.config.behind === 0
      ? 'every node has the latest configuration'
      : `${plural(state.config.behind, 'node')} behind the latest configuration`
  }.`;
}

function Fact(props: { name: string; value: string; note?: string; tone?: string }) {
  const [, value, unit] = /^(.*?)(?: (\S+))?$/.exec(props.value)!;
  return (
    <div>
      <dt>{props.name}</dt>
      <dd class={props.tone ? `is-${props.tone}` : ''}>
        {value}
        <small>{unit}</small>
        {props.note !== undefined && <span>{props.note}</span>}
      </dd>
    </div>
  );
}

export function FlowCard({ frame }: { readonly frame: PageFrame }) {
  const hasQuota = frame.state.quota !== undefined;
  const isEmpty = takersOf(frame).length === 0;
  return (
    <Card
      id="flow"
      title={hasQuota ? 'Where the tokens go' : 'Where the requests go'}
      note={`${hasQuota ? 'tokens per second, cluster → app → node' : 'requests per second, by policy'}${aloneText(frame)}`}
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

const MOST_ALERTS = 3;

export function AlertsCard({ frame }: { readonly frame: PageFrame }) {
  const { learning } = frame.state;
  const alerts = [...frame.state.alerts].sort(byUrgency);
  const others = alerts.slice(MOST_ALERTS);
  return (
    <Card id="alerts" title="Alerts" note={countsOf(alerts) || 'none firing'}>
      {/* Only changes are read out: the list changes when an alert does. */}
      <ol class="alert-list" aria-live="polite" aria-relevant="additions text">
        {alerts.slice(0, MOST_ALERTS).map((alert) => (
          <AlertRow
            key={alert.fingerprint + shownState(alert)}
            alert={alert}
            nowMs={frame.nowMs}
            canWrite={frame.canWrite}
          />
        ))}
      </ol>
      {others.length > 0 && (
        <p class="note">
          And {others.length} more, {countsOf(others)}:{' '}
          {[...new Set(others.map(({ rule }) => ruleTitle(rule)))].join(', ')}.
        </p>
      )}
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

/** All that are listed, those that are over among them. */
function countsOf(alerts: readonly Alert[]): string {
  const over = inState(alerts, 'resolved').length;
  return [alertCounts(alerts), over > 0 && `${over} over`].filter(Boolean).join(', ');
}

function AlertRow({ alert, nowMs, canWrite }: { alert: Alert; nowMs: number; canWrite: boolean }) {
  const said = useSignal('');
  const state = shownState(alert);
  const when =
    state === 'resolved'
      ? `over, ${ago(nowMs - (alert.endedMs ?? alert.sinceMs))}`
      : state === 'ending'
        ? 'cause is gone, ends soon'
        : `${state}, ${span(nowMs - alert.sinceMs)}`;
  const mute = (): void => {
    const rule = alert.rule.split('.')[0];
    ask('mute', { rule, series: alert.series, minutes: 60 }).then(
      () => (said.value = 'muted for an hour'),
      (error: ApiError) => (said.value = error.message),
    );
  };
  return (
    <li class={state}>
      <span class={`dot ${state}`} role="img" aria-label={state} />
      <b>{ruleTitle(alert.rule)}</b>
      <span class="when">
        {when}
        {canWrite && state === 'firing' && said.value === '' && (
          <button class="plain" aria-label="Mute for an hour" onClick={mute}>
            Mute
          </button>
        )}
      </span>
      <p>
        {text(alertText(alert))}
        {said.value !== '' && ` (${said.value})`}
      </p>
    </li>
  );
}

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
            values={recent.slice(-80).map(({ storeP99 }) => storeP99)}
            label={`Time of calls to Redis in the last two minutes, p99: ${ms(series?.p99Ms)} now`}
          />
          <p class="note">{sentence(why)}</p>
        </>
      ) : (
        <p class="note">
          {frame.scope === 'process'
            ? `${shown(frame.seenFrom)} decides by itself`
            : `${plural(store.awayNodes, 'node')} of ${nodeCount} decide by themselves`}
          {away}. Nothing is lost: all settle when it is back.
        </p>
      )}
      <Pairs of={pairs} />
    </div>
  );
}

const aloneText = ({ scope, storeKind }: PageFrame): string =>
  scope === 'process' && storeKind === 'redis' ? '; now of this node alone' : '';

function DecisionsCard({ frame }: { readonly frame: PageFrame }) {
  const total = seriesOf(frame, 'total');
  const degraded = degradedOf(total);
  const [rate, denied] = [total?.rate ?? 0, total?.denied ?? 0];
  return (
    <Card
      id="rate"
      title="Decisions"
      note={`per second, last ${HORIZON_NAMES[horizon.value]}${aloneText(frame)}`}
      side={
        <Legend
          of={[
            ['allow', 'allowed', `${count(Math.max(0, rate - denied - degraded))}/s`],
            ['degraded', 'degraded', `${count(degraded)}/s`],
            ['deny', 'denied', `${count(denied)}/s`],
          ]}
        />
      }
    >
      <RateCharts frame={frame} />
    </Card>
  );
}

const MOST_LIMITED = 8;

function KeysCard({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.limited.slice(0, MOST_LIMITED);
  const most = Math.max(1, ...rows.map(({ weight }) => weight));
  return (
    <Card id="keys" title="Who is limited" note="apps by the second, keys lately">
      {rows.length === 0 ? (
        <Empty title="Nobody is turned away.">
          When somebody is, the busiest are listed here, with the reason.
        </Empty>
      ) : (
        <Table heads={['Who', 'Limit', 'Why', { n: 'Denied' }]}>
          {rows.map(({ kind, who, policy, why, weight, denied }) => (
            <tr key={`${kind} ${policy} ${who}`}>
              <td>
                <button class="plain" onClick={() => look(who)}>
                  {kind === 'key' ? <code>{shown(who).slice(0, 24)}</code> : <b>{shown(who)}</b>}
                </button>
              </td>
              <td>{policy === undefined ? 'app quota' : shown(policy)}</td>
              <td class="why">{text(why)}</td>
              <td class="n heat">
                {/* A burst may be seconds old: what it would come to in a minute was never denied. */}
                {count(denied)}
                {kind === 'app' && '/s'}
                <i style={{ width: `${100 * Math.sqrt(weight / most)}%` }} />
              </td>
            </tr>
          ))}
        </Table>
      )}
      <Look />
    </Card>
  );
}

const lookedFor = signal('');
/** Who was asked for, when, and the answer, or why there is none. */
const looked = signal<readonly [who: string, atMs: number, found: Looked | string] | null>(null);

function look(who: string): void {
  lookedFor.value = who;
  if (who.trim() === '') return;
  const told = (found: Looked | string): void => void (looked.value = [who, Date.now(), found]);
  ask<Looked>('look', { key: who }).then(told, ({ message }: ApiError) => told(message));
}

/** Why is this one limited? */
function Look() {
  const submit = (event: Event): void => {
    event.preventDefault();
    look(lookedFor.value);
  };
  const [who, atMs = 0, found] = looked.value ?? [];
  return (
    <form class="look" onSubmit={submit}>
      <label for="look">Why is this one limited?</label>
      <div>
        <input
          id="look"
          value={lookedFor.value}
          onInput={(event) => (lookedFor.value = event.currentTarget.value)}
          placeholder="user, address or API key"
          autocomplete="off"
          spellcheck={false}
        />
        <button class="ghost">Look</button>
      </div>
      <div role="status" class="looked">
        {/* Not beside another name, nor beside none. */}
        {found !== undefined && who === lookedFor.value && (
          <>
            <p>
              <b>{shown(who)}</b>, asked at {clock(atMs)}:
            </p>
            {typeof found === 'string' ? <p class="is-deny">{found}</p> : <LookedUp of={found} />}
          </>
        )}
      </div>
    </form>
  );
}

function LookedUp({ of: { said, policies, others } }: { readonly of: Looked }) {
  const limited = policies.filter(({ allowed }) => !allowed);
  const passing = policies.filter(({ allowed }) => allowed);
  return (
    <>
      {said !== '' && <p>{text(said)}</p>}
      {limited.map((one) => (
        <p key={one.policy + one.key}>
          <b>{bucketOf(one)}</b> has no token left of {count(one.limit)}
          {one.source === 'fallback' && ', the share of this node while Redis is away'}; the next
          comes in {ms(one.retryAfterMs)}. <code>{shown(one.key)}</code>
        </p>
      ))}
      {passing.slice(0, 3).map((one) => (
        <p key={one.policy + one.key} class="dim">
          {bucketOf(one)}: {count(one.remaining)} of {count(one.limit)} left.{' '}
          <code>{shown(one.key)}</code>
        </p>
      ))}
      {others.slice(0, 3).map(({ policy, takes }) => (
        <p key={policy} class="dim">
          {shown(policy)} was not asked: it goes by {shown(takes)}, so type all of these, with
          spaces between.
        </p>
      ))}
    </>
  );
}

const bucketOf = ({ policy, tier }: LookedAt): string =>
  tier === 'default' ? shown(policy) : `${shown(policy)}, tier ${shown(tier)}`;

function PoliciesCard({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.state.series
    .filter(({ name }) => name.startsWith('policy:'))
    .sort((a, b) => b.denied - a.denied || b.rate - a.rate)
    .slice(0, 7);
  return (
    <Card
      id="policies"
      title="Policies"
      note="busiest first; denied above 5 % is red"
      side={<MoreButton to="policies" text="All policies" />}
    >
      {rows.length === 0 ? (
        <Empty title="No policy has decided yet.">
          A policy is a limit by key: <code>@RateLimit('login-ip')</code>.
        </Empty>
      ) : (
        <Table heads={['Policy', 'Limit', { n: 'Asked/s' }, 'Denied']}>
          {rows.map((series) => (
            <PolicyRow key={series.name} series={series} policies={frame.policies} />
          ))}
        </Table>
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
        {shown(name)} {policy?.shadow === true && <span class="chip">watches only</span>}
      </td>
      <td class="why">{policy === undefined ? '–' : limitOf(policy)}</td>
      <td class="n">{count(series.rate)}</td>
      <td>
        <Share part={series.rate > 0 ? series.denied / series.rate : 0} />
      </td>
    </tr>
  );
}

function FleetCard({ frame }: { readonly frame: PageFrame }) {
  const { nodes, state, seenFrom, unseen } = frame;
  const revision = state.config?.revision ?? 0;
  const behind = nodes.filter((node) => !node.isSilent && node.revision < revision);
  const silent = nodes.filter(({ isSilent }) => isSilent);
  const most = Math.max(1, ...nodes.map(({ rate }) => rate));
  const onIt = nodes.length - behind.length - silent.length;
  const seen = frame.scope === 'fleet' ? state.nodeCount : nodes.length;
  const onRevision = revision > 0 ? `${onIt} on revision ${revision}` : '';
  const others = unseen === null ? '' : `${unseen.count} not seen`;
  const note = [plural(seen, 'node'), others, onRevision, frame.leftOut].filter(Boolean).join(', ');
  return (
    <Card id="fleet" title="Fleet" note={note} side={<MoreButton to="fleet" text="All nodes" />}>
      <ul class="node-list">
        {[...nodes]
          .sort((a, b) => Number(b.isSilent) - Number(a.isSilent) || byName(a.node, b.node))
          .slice(0, 12)
          .map((node) => {
            const [tone, word] = nodeState(node, revision);
            return (
              <li key={node.node} class={tone}>
                <b title={shown(node.node)}>{shown(node.node)}</b>
                <span>
                  {node.isSilent ? '' : `${count(node.rate)}/s${word && ', '}`}
                  {word}
                </span>
                <div class="bar">
                  <i style={{ width: `${(100 * node.rate) / most}%` }} />
                </div>
              </li>
            );
          })}
      </ul>
      {unseen !== null && (
        <p class="note">
          {unseen.nodes
            .slice(0, 5)
            .map(({ node }) => shown(node))
            .join(', ') || plural(unseen.count, 'more node')}
          {unseen.nodes.length > 5 ? ` and ${unseen.count - 5} more` : ''}: {notSeen(unseen)};
          without Redis each decides by itself.
        </p>
      )}
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
        <Pairs
          of={[
            ['in line', count(overload.waiting)],
            ['under way', count(overload.inFlight)],
            ['turn of the loop', ms(overload.turnMs)],
            ['adaptive limits', percent(overload.factor)],
          ]}
        />
      </div>
    </Card>
  );
}

function ChangeCard({ frame }: { readonly frame: PageFrame }) {
  const { change, state, nowMs } = frame;
  if (change === null) return null;
  const behind = state.config?.behind ?? 0;
  const reached =
    frame.unseen !== null
      ? 'not known while Redis is away'
      : behind === 0
        ? 'all nodes'
        : `${state.nodeCount - behind} of ${plural(state.nodeCount, 'node')}`;
  const written =
    change.atMs === null
      ? ''
      : `, ${ago(nowMs - change.atMs)}${change.by === null ? '' : ` by ${shown(change.by)}`}`;
  return (
    <Card
      id="change"
      title="Configuration"
      note={change.revision === 0 ? 'as the code has it' : `revision ${change.revision}${written}`}
      side={
        <div>
          {frame.canWrite && change.revision > 1 && (
            <button class="plain more" onClick={lookAtBefore}>
              Undo
            </button>
          )}
          <MoreButton to="config" text={frame.canWrite ? 'Look and change' : 'Look'} />
        </div>
      }
    >
      <Pairs
        of={[
          ['last change', text(change.told ?? 'none yet')],
          ['profile', shown(change.profile)],
          ['reached', reached],
          ['waiting for their time', plural(change.staged, 'change')],
        ]}
      />
      <Rooms frame={frame} />
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
        {frame.actions.map((one) => (
          <button
            key={one.name}
            class="ghost"
            title={text(one.text)}
            aria-pressed={one.name === chosen.value}
            onClick={() => run(one.name)}
          >
            {shown(one.name)}
          </button>
        ))}
      </div>
      <p role="status">
        {action === undefined ? (
          'Each button makes something happen for a while; what to look at is told here.'
        ) : (
          <>
            {text(action.text)} {text(said.value)}{' '}
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
