/** Rules about figures, and rules about states that should not last: as the configuration and `mute` name them. */
export const FIGURE_RULES = [
  ...(['qpsRise', 'errorRate', 'p99Rise', 'denialRise', 'slowCalls', 'degraded', 'peak'] as const),
] as const;
export const STATE_RULES = [
  ...(['storeAway', 'overload', 'line', 'nodeSilent', 'configBehind'] as const),
  ...(['breakerOpen', 'levelHeld', 'relapse'] as const),
] as const;

export type FigureRuleName = (typeof FIGURE_RULES)[number];
export type StateRuleName = (typeof STATE_RULES)[number];
/** The rules of alerts. */
export type RuleName = (typeof FIGURE_RULES)[number] | (typeof STATE_RULES)[number];

export const RULE_NAMES: readonly RuleName[] = [...FIGURE_RULES, ...STATE_RULES];

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
