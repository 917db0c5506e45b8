import { BASELINES } from '../baselines.js';
import { type Requests } from '../engine/observations.js';
import { runPlan, type RunPlan, type RunRecord } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import {
  callsPerSecond,
  excess,
  idealOf,
  localPart,
  onTheWay,
  SPANS_SECONDS,
  utilisation,
  worstIn,
} from '../measure/figures.js';
import { type Findings } from '../report/findings.js';
import { idealKind, type Setting } from './scenario.js';

/** The same plan, gone through by everybody. */
export interface Comparison {
  readonly plan: RunPlan;
  readonly weir: RunRecord;
  readonly baselines: readonly RunRecord[];
  readonly ideal: Requests;
  /** Under the user's rules: what one bucket without any rules would have admitted. */
  readonly oneBucket: Requests | undefined;
}

export async function compare(plan: RunPlan, setting: Setting): Promise<Comparison> {
  const kind = idealKind(setting);
  const weir = await runPlan(plan, WEIR);
  const baselines: RunRecord[] = [];
  for (const contender of setting.against ?? BASELINES)
    baselines.push(await runPlan(plan, contender));
  const ideal = idealOf(plan, weir.offered, kind);
  const oneBucket = kind === 'bucket' ? undefined : idealOf(plan, weir.offered, 'bucket');
  return { plan, weir, baselines, ideal, oneBucket };
}

export interface Promises {
  /** Least utilisation; only shown if there is none. */
  readonly utilisation?: number;
  /** Least part of local decisions; only shown if there is none. */
  readonly local?: number;
  /** Most calls per second over the whole run; only shown if there is none. */
  readonly calls?: number;
  /** Without lost writes the cap holds in every span. */
  readonly cap?: 'kept' | 'shown';
}

const NO_PROMISES: Promises = { cap: 'shown' };

/** The figures that every scenario has; promises are about weir alone. */
export function addFigures(findings: Findings, made: Comparison, promises: Promises): void {
  const { plan, weir, baselines, ideal, oneBucket } = made;
  for (const run of [weir, ...baselines]) {
    const isWeir = run === weir;
    const { utilisation: used, local, calls, cap = 'kept' } = isWeir ? promises : NO_PROMISES;
    const { contender } = run;
    findings.atLeastIf(contender, 'utilisation', utilisation(run, ideal), used);
    if (oneBucket !== undefined) {
      findings.show(contender, 'admitted / one bucket', utilisation(run, oneBucket));
    }
    addCap(findings, plan, run, cap);
    findings.atLeastIf(contender, 'local decisions', localPart(run), local);
    const perSecond = callsPerSecond(run, 0, plan.seconds);
    findings.atMostIf(contender, 'store calls per second', perSecond, calls);
  }
}

/** `of` tells runs of one scenario apart. */
export function addCap(
  findings: Findings,
  plan: RunPlan,
  run: RunRecord,
  as: 'kept' | 'shown',
  of = '',
): void {
  const bar = as === 'kept' ? 1 : undefined;
  for (const seconds of SPANS_SECONDS) {
    const figure = `worst ${seconds} s / (C·Δ + B)${of}`;
    findings.atMostIf(run.contender, figure, worstIn(plan, run, seconds), bar);
  }
  const figure = `tokens beyond C·Δ + B in any Δ${of}`;
  const most = as === 'kept' ? onTheWay(plan.quota.figures) : undefined;
  findings.atMostIf(run.contender, figure, excess(plan, run), most);
}
