import { useSignal } from '@preact/signals';
import { type Alert } from '../../observability/alerts/alert.js';
import {
  alertCounts,
  alertsText,
  byUrgency,
  inState,
  levelOf,
  ruleTitle,
  shownState,
} from '../../observability/alerts/alert-words.js';
import { type PageFrame } from '../frame.js';
import { Card } from './card.js';
import { ago, span, text } from './format.js';
import { type ApiError, ask } from './live.js';
import { StorePart } from './store.js';

const MOST_ROWS = 3;

export function AlertsCard({ frame }: { readonly frame: PageFrame }) {
  const { learning } = frame.state;
  const alerts = [...frame.state.alerts].sort(byUrgency);
  const rows = rowsOf(alerts);
  const others = rows.slice(MOST_ROWS).flat();
  return (
    <Card id="alerts" title="Alerts" note={countsOf(alerts) || 'none firing'}>
      {/* Only changes are read out: the list changes when an alert does. */}
      <ol class="alert-list" aria-live="polite" aria-relevant="additions text">
        {rows.slice(0, MOST_ROWS).map((row) => (
          <AlertRow
            key={row[0]!.fingerprint + shownState(row[0]!)}
            row={row}
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

/** Alerts of one rule and state, from the first to the last: one cause mostly has several. */
type Row = readonly Alert[];

function rowsOf(alerts: readonly Alert[]): Row[] {
  const rows = new Map<string, Alert[]>();
  for (const one of alerts) {
    const of = one.rule + shownState(one);
    const row = rows.get(of);
    if (row) row.push(one);
    else rows.set(of, [one]);
  }
  return [...rows.values()];
}

function AlertRow({ row, nowMs, canWrite }: { row: Row; nowMs: number; canWrite: boolean }) {
  const said = useSignal('');
  const alert = row[0]!;
  const state = shownState(alert);
  const when =
    state === 'resolved'
      ? `over, ${ago(nowMs - (alert.endedMs ?? alert.sinceMs))}`
      : state === 'ending'
        ? 'cause is gone, ends soon'
        : `${state}, ${span(nowMs - alert.sinceMs)}`;
  const mute = async (): Promise<void> => {
    try {
      for (const { rule, series } of row) {
        await ask('mute', { rule: rule.split('.')[0], series, minutes: 60 });
      }
      said.value = 'muted for an hour';
    } catch (error) {
      said.value = (error as ApiError).message;
    }
  };
  return (
    <li class={state}>
      <span
        class={`dot ${state} ${levelOf(alert.severity)}`}
        role="img"
        aria-label={`${alert.severity}, ${state}`}
      />
      <b>{ruleTitle(alert.rule)}</b>
      <span class="when">
        {when}
        {canWrite && state === 'firing' && said.value === '' && (
          <button class="plain" aria-label="Mute for an hour" onClick={() => void mute()}>
            Mute
          </button>
        )}
      </span>
      <p>{[text(alertsText(row)), said.value].filter(Boolean).join('; ')}</p>
    </li>
  );
}
