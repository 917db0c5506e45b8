import { type Alert } from './alert.js';
import { type RuleName } from './rule-names.js';

const TITLES: Readonly<Record<RuleName, string>> = {
  qpsRise: 'Traffic rises',
  errorRate: 'Errors',
  p99Rise: 'Answers get slower',
  slowCalls: 'Calls are slow',
  denialRise: 'Denials rise',
  degraded: 'Degraded answers',
  peak: 'Peak near the limit',
  storeAway: 'Redis is away',
  overload: 'Cluster is overloaded',
  line: 'Requests stand in line',
  breakerOpen: 'Breaker is open',
  levelHeld: 'Answers stay reduced',
  relapse: 'Falls back again and again',
  nodeSilent: 'Node is silent',
  configBehind: 'Configuration is behind',
};

/** A few words for people; `degraded` is four rules, by level. */
export function ruleTitle(rule: string): string {
  const [name = '', level] = rule.split('.level');
  const title = TITLES[name as RuleName] ?? rule;
  return level === undefined ? title : `${title}, level ${level}`;
}

/** It fires, and its cause is gone: over if that lasts. */
export const isEnding = (alert: {
  readonly state: string;
  readonly value: number;
  readonly threshold: number;
  readonly isTrend?: boolean;
}): boolean => alert.state === 'firing' && !alert.isTrend && alert.value < alert.threshold;

/** One that ends beside a cause that is gone must not look as if it fired; nor must one that nobody wants to hear of. */
export type ShownAlertState = 'firing' | 'pending' | 'ending' | 'muted' | 'resolved';

export function shownState(alert: Alert): ShownAlertState {
  if (alert.muted && alert.state !== 'resolved') return 'muted';
  return isEnding(alert) ? 'ending' : alert.state;
}

const STATES: readonly ShownAlertState[] = ['firing', 'pending', 'ending', 'muted', 'resolved'];
const SEVERITIES: readonly Alert['severity'][] = ['critical', 'warning', 'info'];

/** How bad that is, as the level of a verdict: a severity looks the same wherever it is shown. */
export const levelOf = (severity: Alert['severity']): 'info' | 'warning' | 'bad' =>
  severity === 'critical' ? 'bad' : severity;

/** States from which rises of figures follow. */
const CAUSE = /storeAway|overload|line|breakerOpen/;

/** Those that fire come first; of one state the severe before the others, of one severity the causes; then the latest. */
export function byUrgency(one: Alert, other: Alert): number {
  const place = (alert: Alert): number =>
    STATES.indexOf(shownState(alert)) * 6 +
    SEVERITIES.indexOf(alert.severity) * 2 +
    (CAUSE.test(alert.rule) ? 0 : 1);
  return place(one) - place(other) || other.sinceMs - one.sinceMs;
}

/** Page, title and verdict count by this. */
export const inState = (alerts: readonly Alert[], state: ShownAlertState): Alert[] =>
  alerts.filter((one) => shownState(one) === state);

/** `2 firing, 1 pending, 1 ending`, the most urgent first; empty if all are over. */
export function alertCounts(alerts: readonly Alert[]): string {
  return STATES.slice(0, -1)
    .map((state) => [inState(alerts, state).length, state] as const)
    .flatMap(([number, state]) => (number === 0 ? [] : `${number} ${state}`))
    .join(', ');
}

/** Whom a series is of, as people say it; empty of all requests and of Redis. */
export function seriesTitle(series: string): string {
  if (series === 'total' || series === 'store') return '';
  const name = series.slice(series.indexOf(':') + 1);
  return series.startsWith('policy:') ? `policy ${name}` : name;
}

/** The fields of an alert that its sentence is made of. */
interface SaidAlert {
  readonly rule: string;
  readonly series: string;
  readonly state: string;
  readonly text: string;
}

/** The sentence of an alert beside its title and its state; empty if these say all. */
export function alertText({ rule, series, state, text }: SaidAlert): string {
  // A name with control characters was told in another way.
  if (!text.startsWith(`${series}: `)) return text;
  const said = text.slice(series.length + 2);
  const rest = state === 'resolved' ? said.replace(`${rule} is over`, '').trim() : said;
  return [seriesTitle(series), rest].filter(Boolean).join(': ');
}

/** The same of several of one rule and state: the sentence of the first, and whom the others are about. */
export function alertsText([first, ...others]: readonly SaidAlert[]): string {
  if (first === undefined) return '';
  const said = alertText(first);
  if (others.length === 0) return said;
  const names = others.map(({ series }) => seriesTitle(series) || ALL);
  return `${said || ALL}; also ${names.join(', ')}`;
}

const ALL = 'all requests';
