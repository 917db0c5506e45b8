import { signal } from '@preact/signals';
import { type Looked, type LookedAt, type PageFrame } from '../frame.js';
import { Card, Empty, Table } from './card.js';
import { clock, count, ms, shown, text } from './format.js';
import { type ApiError, ask } from './live.js';

const MOST_LIMITED = 6;

export function KeysCard({ frame }: { readonly frame: PageFrame }) {
  const rows = frame.limited.slice(0, MOST_LIMITED);
  const most = Math.max(1, ...rows.map(({ denied }) => denied));
  return (
    <Card id="keys" title="Who is limited" note="denials of the last minute">
      {rows.length === 0 ? (
        <Empty title="Nobody is turned away.">
          When somebody is, the busiest are listed here, with the reason.
        </Empty>
      ) : (
        <Table heads={['Who', 'Limit', 'Why', { n: 'Denied' }]}>
          {rows.map(({ kind, who, policy, why, denied }) => (
            <tr key={`${kind} ${policy} ${who}`}>
              <td>
                <button class="plain" onClick={() => look(who)}>
                  {kind === 'key' ? <code>{shown(who).slice(0, 24)}</code> : <b>{shown(who)}</b>}
                </button>
              </td>
              <td>{policy === undefined ? 'app quota' : shown(policy)}</td>
              <td class="why">{text(why)}</td>
              <td class="n heat">
                {count(denied)}
                <i style={{ width: `${100 * Math.sqrt(denied / most)}%` }} />
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
  // The answer stands below the list, often below what is seen.
  document.getElementById('look')!.scrollIntoView({ block: 'center' });
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
          comes {ms(one.retryAfterMs)} later. <code>{shown(one.key)}</code>
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
          {shown(policy)} was not asked: it goes by {shown(takes)}: type all, with spaces between.
        </p>
      ))}
    </>
  );
}

const bucketOf = ({ policy, tier }: LookedAt): string =>
  tier === 'default' ? shown(policy) : `${shown(policy)}, tier ${shown(tier)}`;
