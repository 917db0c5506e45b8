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
