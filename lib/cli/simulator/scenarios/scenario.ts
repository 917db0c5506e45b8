import { type QuotaSettings } from '../../../limiter/quota-options.js';
import { type Contender } from '../engine/contender.js';
import { type IdealKind } from '../measure/figures.js';
import { type Chart } from '../report/chart.js';
import { type FigureRow } from '../report/findings.js';

/** On what figures the scenarios run. */
export interface Setting {
  /** The user's own; without them each scenario has its own. */
  readonly quota?: QuotaSettings;
  /** Processes; without it each scenario has its own number. */
  readonly nodes?: number;
  readonly seed: number;
  /** Contenders that go through it as well; all baselines by default. */
  readonly against?: readonly Contender[];
}

export interface ScenarioReport {
  readonly rows: readonly FigureRow[];
  readonly chart: Chart;
  /** Promises that do not hold for these figures, and the reason. */
  readonly notes?: readonly string[];
}

export interface Scenario {
  readonly name: string;
  readonly about: string;
  run(setting: Setting): Promise<ScenarioReport>;
}

/** A user's quota has rules that one bucket does not know. */
export function idealKind({ quota }: Setting): IdealKind {
  return quota === undefined ? 'bucket' : 'ledger';
}
