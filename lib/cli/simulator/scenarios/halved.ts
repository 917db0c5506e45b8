import { limitChange } from '../engine/faults.js';
import { runPlan, type LevelSample } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import { even } from '../load.js';
import { depthOf, idealOf } from '../measure/figures.js';
import { mostBeyondRate } from '../measure/sliding-span.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { addCap } from './compare.js';
import { Ground, oneApp, scaled } from './ground.js';
import { idealKind, type Scenario } from './scenario.js';

const SECONDS = 12;
const AT = 5;

export const HALVED: Scenario = {
  name: 'halved',
  about: 'all limits are halved while the fleet is busy',
  async run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
    const lower = scaled(ground.figures, 0.5);
    const faults = [limitChange(AT, lower)];
    const plan = ground.plan(SECONDS, ground.rates(1.3), even(ground.nodes), faults);
    const run = await runPlan(plan, WEIR);
    const [rate, depth] = [lower.cluster!.capacity, depthOf(lower)];
    const beyondFrom = (from: number): number => {
      const at = run.admitted.at.filter((second) => second >= from);
      return Math.max(0, mostBeyondRate(at, plan.cost, rate) - depth);
    };
    const findings = new Findings(this.name);
    const outstanding = before(run.samples, AT);
    findings.atMost('weir', 'tokens beyond the new C·Δ + B', beyondFrom(AT), outstanding);
    const later = AT + ground.figures.leaseTtlMs / 1000;
    findings.atMost('weir', 'the same, one lease time later', beyondFrom(later), 0);
    const since = run.admitted.at.filter((second) => second >= later).length * plan.cost;
    findings.show('weir', 'admitted later / new C', since / (rate * (SECONDS - later)));
    addCap(findings, plan, run, 'kept');
    const ideal = idealOf(plan, run.offered, idealKind(setting));
    const title = `${this.name}: ${this.about} (ideal: the old limits)`;
    return { rows: findings.rows, chart: tokenChart(title, plan, run, ideal) };
  },
};

/** Tokens that were leased when it happened. */
function before(samples: readonly LevelSample[], at: number): number {
  return samples.findLast(({ second }) => second <= at)!.outstanding;
}
