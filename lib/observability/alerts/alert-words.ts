import { type RuleName } from './rule-names.js';

const TITLES: Readonly<Record<RuleName, string>> = {
  qpsRise: 'Traffic rises',
  errorRate: 'Errors',
  p99Rise: 'Answers get slower',
  slowCalls: 'Calls are slow',
  denialRise: 'Denials rise',
  degraded: 'Degraded answers',
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

/** A few words for people; `degraded` is four rules, by level. */
export function ruleTitle(rule: string): string {
  const [name = '', level] = rule.split('.level');
  const title = TITLES[name as RuleName] ?? rule;
  return level === undefined ? title : `${title}, level ${level}`;
}

/** It fires, and its cause is gone: over if that lasts. A peak is of a day, or of a trend. */
export const isEnding = (alert: {
  readonly rule: string;
  readonly state: string;
  readonly value: number;
  readonly threshold: number;
}): boolean => alert.state === 'firing' && alert.rule !== 'peak' && alert.value < alert.threshold;

/** Whom a series is of, as people say it; empty of all requests and of Redis. */
export function seriesTitle(series: string): string {
  if (series === 'total' || series === 'store') return '';
  const name = series.slice(series.indexOf(':') + 1);
  return series.startsWith('policy:') ? `policy ${name}` : name;
}

/** The sentence of an alert beside its title and its state; empty if these say all. */
export function alertText(alert: {
  readonly rule: string;
  readonly series: string;
  readonly state: string;
  readonly text: string;
}): string {
  const { rule, series, state, text } = alert;
  // A name with control characters was told in another way.
  if (!text.startsWith(`${series}: `)) return text;
  const said = text.slice(series.length + 2);
  const rest = state === 'resolved' ? said.replace(`${rule} is over`, '').trim() : said;
  return [seriesTitle(series), rest].filter(Boolean).join(': ');
}
