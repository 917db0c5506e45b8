import { sentenceOf, type Alert } from '../../lib/observability/alerts/alert.js';
import {
  alertCounts,
  alertsText,
  alertText,
  byUrgency,
  inState,
  levelOf,
} from '../../lib/observability/alerts/alert-words.js';
import { QUIET, type AlertState } from '../../lib/observability/alerts/evaluate.js';
import { checkAlerts } from '../../lib/observability/alerts/rules.js';
import { verdict, type WatchedFleet } from '../../lib/observability/verdict.js';

describe('the sentence of an alert', () => {
  const said = (
    id: string,
    value: number,
    threshold: number,
    { series = 'total', ...more }: Partial<AlertState> & { readonly series?: string } = {},
  ): string => {
    const rule = checkAlerts().rules.find((one) => one.id === id)!;
    return sentenceOf(rule, series, { ...QUIET, phase: 'firing', value, threshold, ...more });
  };

  it('names the time that its figure is of', () => {
    expect([
      said('qpsRise', 300, 200),
      said('errorRate', 0.02, 0.01),
      said('p99Rise', 80_000, 50_000),
      said('denialRise', 0.12, 0.05),
      said('denialRise', 0.04, 0.05),
      said('slowCalls', 0.3, 0.2),
      said('degraded.level2', 0.02, 0.01),
      said('peak', 0.84, 0.8, { limit: 500 }),
    ]).toEqual([
      'total: 300 requests a second in the last 10 s, above 200',
      'total: at least 2 % of the requests failed in the last minute, and in the last 5 min, above 1 %',
      'total: p99 was 80 ms in the last 5 min, above 50 ms',
      'total: 12 % of the requests were denied in the last minute, above 5 %',
      'total: 4 % of the requests were denied in the last minute, no longer above 5 %',
      'total: 30 % of the calls were slow in the last minute, above 20 %',
      'total: 2 % of the answers were of level 2 in the last 5 min, above 1 %',
      'total: the busiest minute in the last day used 84 % of the capacity of 500/s',
    ]);
  });

  it('says of one that ends what was so, and below which figure it fell', () => {
    const ending = ['storeAway', 'overload', 'breakerOpen'].map((id) => said(id, 0, 1));
    expect([...ending, said('errorRate', 0, 0.01)]).toEqual([
      'total: over: Redis did not answer; processes decided by themselves',
      'total: over: all apps together asked for about all of the capacity or more',
      'total: over: the breaker was open',
      'total: errors fell below 1 % of the requests, in the last minute or in the last 5 min',
    ]);
    expect(said('storeAway', 1, 1, { series: 'store' })).toBe(
      'store: Redis does not answer; processes decide by themselves',
    );
  });

  it('has as many digits as it takes to see that one figure is above the other', () => {
    expect([
      said('qpsRise', 12_341, 12_339),
      said('p99Rise', 50_040, 50_000),
      said('denialRise', 0.0504, 0.05),
    ]).toEqual([
      'total: 12.341k requests a second in the last 10 s, above 12.339k',
      'total: p99 was 50.04 ms in the last 5 min, above 50 ms',
      'total: 5.04 % of the requests were denied in the last minute, above 5 %',
    ]);
  });

  it('names the limit that a peak is near, and a trend only where there is one', () => {
    const series = 'app:reports';
    expect([
      said('peak', 0.8, 0.8, { series, limit: 60 }),
      said('peak', 0.25, 0.8, { series, limit: 150 }),
      said('peak', 0.5, 0.8, { series, limit: 150, isTrend: true }),
      said('peak', 0.5, 0.8, { limit: 500, isTrend: true }),
      // As an earlier version has left it.
      said('peak', 0.9, 0.8, { series }),
    ]).toEqual([
      'app:reports: the busiest minute in the last day used 80 % of its ceiling of 60/s',
      'app:reports: the busiest minute in the last day used 25 % of its ceiling of 150/s, no longer 80 %',
      'app:reports: the trend reaches its ceiling of 150/s within 14 days',
      'total: the trend reaches the capacity of 500/s within 14 days',
      'app:reports: the busiest minute in the last day used 90 % of its ceiling',
    ]);
  });
});

describe('the sentence of an alert beside its title', () => {
  const said = (rule: string, series: string, text: string, state = 'firing'): string =>
    alertText({ rule, series, state, text: `${series}: ${text}` });

  it('names whom it is about as people do, and nobody where the title says all', () => {
    expect(said('breakerOpen', 'resource:db', 'the breaker is open')).toBe(
      'db: the breaker is open',
    );
    expect(said('denialRise', 'policy:login', '9 % of the requests are denied')).toBe(
      'policy login: 9 % of the requests are denied',
    );
    expect(said('overload', 'total', 'all apps together ask')).toBe('all apps together ask');
    expect(said('storeAway', 'store', 'Redis does not answer')).toBe('Redis does not answer');
  });

  it('does not repeat by the name of the rule that it is over', () => {
    expect(said('storeAway', 'store', 'storeAway is over', 'resolved')).toBe('');
    expect(said('breakerOpen', 'resource:db', 'breakerOpen is over', 'resolved')).toBe('db');
    const removed = 'degraded.level2 is over (rule removed)';
    expect(said('degraded.level2', 'resource:db', removed, 'resolved')).toBe('db: (rule removed)');
  });

  it('names all of a row, of which the first may have nothing else to say', () => {
    const row = (state: string, ...all: string[]) =>
      alertsText(
        all.map((series) => {
          const text = state === 'resolved' ? 'qpsRise is over' : '90 requests a second';
          return { rule: 'qpsRise', series, state, text: `${series}: ${text}` };
        }),
      );
    expect(row('firing', 'total', 'app:search')).toBe('90 requests a second; also search');
    expect(row('firing', 'app:search', 'total', 'policy:login')).toBe(
      'search: 90 requests a second; also all requests, policy login',
    );
    expect(row('resolved', 'total', 'app:search')).toBe('all requests; also search');
    expect(row('resolved', 'app:search', 'total')).toBe('search; also all requests');
    expect(row('resolved', 'total')).toBe('');
    expect(row('resolved')).toBe('');
  });

  it('stays as it is where its name was told in another way', () => {
    const text = 'resource:a·b: the breaker is open';
    expect(alertText({ rule: 'breakerOpen', series: 'resource:a\nb', state: 'firing', text })).toBe(
      text,
    );
  });
});

describe('alerts in a list', () => {
  const alert = (rule: string, more: Partial<Alert>): Alert => ({
    ...{ rule, series: 'total', state: 'firing', severity: 'warning', text: '', muted: false },
    ...{ value: 2, threshold: 1, sinceMs: 0, fingerprint: '', nodeId: 'a', cluster: 'shop' },
    ...more,
  });
  const all = [
    alert('over', { state: 'resolved', severity: 'critical' }),
    alert('gone', { value: 0, severity: 'critical' }),
    alert('soon', { state: 'pending', severity: 'critical' }),
    alert('info', { severity: 'info', sinceMs: 9 }),
    alert('silenced', { muted: true, severity: 'critical' }),
    alert('older', { sinceMs: 1 }),
    alert('newer', { sinceMs: 2 }),
    alert('critical', { severity: 'critical' }),
    alert('peak', { value: 0.5, isTrend: true, sinceMs: 0.5 }),
    alert('peak', { value: 0.5, sinceMs: 0.5 }),
  ];

  it('have those that fire first, the most severe before the others, and those that are over last', () => {
    expect([...all].sort(byUrgency).map(({ rule }) => rule)).toEqual([
      ...['critical', 'newer', 'older', 'peak', 'info', 'soon', 'gone', 'peak', 'silenced', 'over'],
    ]);
  });

  it('have a cause before its effects of the same state and severity, and none above one that fires', () => {
    const effects = [
      alert('denialRise', { sinceMs: 9 }),
      alert('qpsRise', { severity: 'info' }),
      alert('slowCalls', { state: 'pending', sinceMs: 9 }),
      alert('errorRate', { severity: 'critical' }),
    ];
    const causes = [
      alert('overload', { state: 'pending', sinceMs: 8 }),
      alert('breakerOpen', { sinceMs: 1 }),
      alert('storeAway', { severity: 'critical', value: 0 }),
    ];
    expect([...effects, ...causes].sort(byUrgency).map(({ rule }) => rule)).toEqual([
      ...['errorRate', 'breakerOpen', 'denialRise', 'qpsRise'],
      ...['overload', 'slowCalls'],
      'storeAway',
    ]);
  });

  it('look as bad as the verdict that is about them', () => {
    for (const severity of ['info', 'warning', 'critical'] as const) {
      const state = { alerts: [alert('peak', { severity })], series: [], resources: [] };
      const { level } = verdict(state as unknown as WatchedFleet);
      expect([severity, levelOf(severity)]).toEqual([severity, level]);
    }
    expect(levelOf('critical')).toBe('bad');
  });

  it('are counted in that order, each once', () => {
    expect(alertCounts(all)).toBe('5 firing, 1 pending, 2 ending, 1 muted');
    expect(alertCounts(all.slice(0, 1))).toBe('');
    expect(inState(all, 'firing')).toHaveLength(5);
  });
});
