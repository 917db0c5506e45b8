import { useSignal } from '@preact/signals';
import { type SeriesState } from '../../observability/state.js';
import { type PageFrame, type ShownAction, type ShownPolicy } from '../frame.js';
import { CapacityCard, Rooms } from './capacity.js';
import { lookAtBefore } from './config.js';
import { Card, Empty, Legend, MoreButton, Pairs, Share, Table } from './card.js';
import { Flow, FlowList, takersOf } from './flow.js';
import {
  ago,
  byName,
  count,
  limitOf,
  ms,
  notSeen,
  percent,
  plural,
  shown,
  text,
} from './format.js';
import { byDenials, nodeState, wrongness } from './judge.js';
import { type ApiError, ask, go, horizon, HORIZON_NAMES, opened } from './live.js';
import { degradedOf, isQuiet, RateCharts, seriesOf } from './rates.js';
import { ResourcesCard } from './resources.js';
import { VerdictBar } from './verdict-bar.js';
import { AlertsCard } from './alerts.js';
import { KeysCard } from './limited.js';

const aloneText = ({ scope, storeKind }: PageFrame): string =>
  scope === 'process' && storeKind === 'redis' ? '; now of this node alone' : '';

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
      {!isEmpty && (
        <>
          <Flow frame={frame} />
          <FlowList frame={frame} />
        </>
      )}
      {isQuiet() && (
        <p class={isEmpty ? 'empty' : 'note'}>
          Nothing is decided now. Call a route that has <code>@RateLimit()</code>, and it shows here
          within seconds: <code>curl {location.origin}/…</code>
        </p>
      )}
      {!hasQuota && (
        <p class="note">
          Limits stand alone here: no app has a share of a cluster.{' '}
          <a
            href="https://github.com/nestjs-weir/nestjs-weir/blob/main/docs/quotas.md"
            target="_blank"
            rel="noreferrer"
          >
            Quotas
          </a>{' '}
          give them guarantees.
        </p>
      )}
    </Card>
  );
}

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

function PoliciesCard({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.state.series
    .filter(({ name }) => name.startsWith('policy:'))
    .sort(byDenials)
    .slice(0, 7);
  return (
    <Card
      id="policies"
      title="Policies"
      note="most denials/s first; above 5 % is red"
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

const MOST_TILES = 12;

function FleetCard({ frame }: { readonly frame: PageFrame }) {
  const { nodes, state, seenFrom, unseen } = frame;
  const revision = state.config?.revision ?? 0;
  const silent = nodes.filter(({ isSilent }) => isSilent);
  const most = Math.max(1, ...nodes.map(({ rate }) => rate));
  // Of a large fleet the frame has the busiest nodes alone.
  const isFleet = frame.scope === 'fleet';
  const seen = isFleet ? state.nodeCount : nodes.length;
  const behind = isFleet ? (state.config?.behind ?? 0) : 0;
  const late = nodes.find((node) => !node.isSilent && node.revision < revision);
  const tiles = [...nodes].sort(
    (a, b) => wrongness(b, revision) - wrongness(a, revision) || byName(a.node, b.node),
  );
  const onRevision =
    revision > 0 ? `${count(seen - behind - silent.length)} on revision ${revision}` : '';
  const others = unseen === null ? '' : `${unseen.count} not seen`;
  const note = [plural(seen, 'node'), others, onRevision, frame.leftOut].filter(Boolean).join(', ');
  return (
    <Card id="fleet" title="Fleet" note={note} side={<MoreButton to="fleet" text="All nodes" />}>
      <ul class="node-list">
        {tiles.slice(0, MOST_TILES).map((node) => {
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
        {seen > MOST_TILES && <li>and {count(seen - MOST_TILES)} more</li>}
      </ul>
      {unseen !== null && (
        <p class="note">
          {unseen.nodes
            .slice(0, 5)
            .map(({ node }) => shown(node))
            .join(', ') || plural(unseen.count, 'more node')}
          {unseen.nodes.length > 5 ? ` and ${unseen.count - 5} more` : ''}: {notSeen(unseen)}
          {!state.store?.isUp && '; without Redis each decides by itself'}.
        </p>
      )}
      {behind > 0 && (
        <p class="note">
          <b>{late === undefined ? plural(behind, 'node') : shown(late.node)}</b>
          {late !== undefined && behind > 1 && ` and ${count(behind - 1)} more`}
          {behind > 1 ? ' have' : ' has'} not applied revision {revision} yet.{' '}
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
      {behind + silent.length === 0 && (
        <p class="note">
          {isFleet
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
  const { change, nowMs } = frame;
  if (change === null) return null;
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
          ['in force', frame.reached || 'here'],
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
  const focused = useSignal<string | null>(null);
  const said = useSignal('');
  const isOpen = useSignal(false);
  if (!frame.canWrite || frame.actions.length === 0) return null;
  const run = (name: string): void => {
    chosen.value = name;
    said.value = '';
    ask<{ said: string }>(`actions/${encodeURIComponent(name)}`, {}).then(
      (answer) => chosen.value === name && (said.value = answer.said),
      (error: ApiError) => chosen.value === name && (said.value = error.message),
    );
  };
  const wanted = focused.value ?? chosen.value;
  const action = frame.actions.find(({ name }) => name === wanted);
  return (
    <section class="action-bar" aria-label="Try it">
      <b>Try it</b>
      <div class="actions">
        {frame.actions.map(({ name, text: told }) => (
          <button
            key={name}
            class="ghost"
            title={text(told)}
            aria-pressed={name === chosen.value}
            onClick={() => run(name)}
            onFocus={() => (focused.value = name)}
            onBlur={() => (focused.value = null)}
          >
            {shown(name)}
          </button>
        ))}
      </div>
      <button
        class="plain"
        aria-expanded={isOpen.value}
        onClick={() => (isOpen.value = !isOpen.value)}
      >
        What they do
      </button>
      <p role="status">
        {action !== undefined && !isOpen.value && <ActionText of={action} />} {text(said.value)}
      </p>
      {isOpen.value && (
        <dl>
          {frame.actions.map((one) => (
            <div key={one.name}>
              <dt>{shown(one.name)}</dt>
              <dd>
                <ActionText of={one} />
              </dd>
            </div>
          ))}
        </dl>
      )}
    </section>
  );
}

/** What it does, and the file that does it. */
function ActionText({ of: { text: told, link } }: { of: ShownAction }) {
  return (
    <>
      {text(told)}{' '}
      {link !== null && (
        <a href={link} target="_blank" rel="noreferrer">
          {shown(link.split('/').at(-1)!)}
        </a>
      )}
    </>
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
