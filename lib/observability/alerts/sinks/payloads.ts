import { plain, type Alert } from '../alert.js';

export const WEBHOOK_FORMATS = ['weir', 'alertmanager', 'alertmanager-webhook', 'slack'] as const;
/** The form of the messages to a webhook. */
export type WebhookFormat = (typeof WEBHOOK_FORMATS)[number];

/** Alertmanager takes an alert for over if nobody repeats it for so long. */
const ENDS_AFTER_MS = 180_000;

const instant = (ms: number): string => new Date(ms).toISOString();

const labelsOf = ({ rule, series, severity, cluster }: Alert): Record<string, string> => ({
  alertname: `weir_${rule.replace('.', '_')}`,
  ...{ severity, series: plain(series), cluster: plain(cluster) },
});

const annotationsOf = ({ text, value, threshold }: Alert): Record<string, string> => ({
  ...{ summary: text, value: String(value), threshold: String(threshold) },
});

/** The body of a call, in the words of its receiver. */
export function payloadOf(format: WebhookFormat, alerts: readonly Alert[], nowMs: number): unknown {
  switch (format) {
    case 'weir':
      return { version: 1, alerts: alerts.map(plainAlert) };
    case 'alertmanager':
      return alerts.map((alert) => ({
        ...{ labels: labelsOf(alert), annotations: annotationsOf(alert) },
        startsAt: instant(alert.sinceMs),
        endsAt: instant(alert.endedMs ?? nowMs + ENDS_AFTER_MS),
      }));
    case 'alertmanager-webhook':
      return webhookOf(alerts);
    case 'slack':
      return { text: alerts.map(lineOf).join('\n') };
  }
}

const plainAlert = (alert: Alert): Alert => ({
  ...alert,
  ...{ series: plain(alert.series), cluster: plain(alert.cluster), nodeId: plain(alert.nodeId) },
});

/** The body that Alertmanager itself sends to a webhook, version 4. */
function webhookOf(alerts: readonly Alert[]): unknown {
  const status = alerts.some(({ state }) => state === 'firing') ? 'firing' : 'resolved';
  const cluster = plain(alerts[0]?.cluster ?? '');
  return {
    version: '4',
    groupKey: `weir:${cluster}`,
    truncatedAlerts: 0,
    ...{ status, receiver: 'weir', groupLabels: { cluster }, commonLabels: { cluster } },
    ...{ commonAnnotations: {}, externalURL: '' },
    alerts: alerts.map((alert) => ({
      status: alert.state,
      ...{ labels: labelsOf(alert), annotations: annotationsOf(alert) },
      startsAt: instant(alert.sinceMs),
      endsAt: alert.endedMs === undefined ? '0001-01-01T00:00:00Z' : instant(alert.endedMs),
      ...{ generatorURL: '', fingerprint: alert.fingerprint },
    })),
  };
}

const MARKS = { info: ':information_source:', warning: ':warning:', critical: ':rotating_light:' };

function lineOf({ state, severity, text, cluster }: Alert): string {
  const mark = state === 'resolved' ? ':white_check_mark:' : MARKS[severity];
  return `${mark} ${escaped(text)} (${escaped(plain(cluster))})`;
}

/** The three signs that Slack reads as more than text. */
const escaped = (text: string): string =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
