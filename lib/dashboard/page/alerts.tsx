import { useSignal } from '@preact/signals';
import { type Alert } from '../../observability/alerts/alert.js';
import {
  alertCounts,
  alertText,
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
      <span
        class={`dot ${state} ${levelOf(alert.severity)}`}
        role="img"
        aria-label={`${alert.severity}, ${state}`}
      />
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
