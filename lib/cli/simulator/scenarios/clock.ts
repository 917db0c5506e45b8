import { clockStep } from '../engine/faults.js';
import { runPlan } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import { even, surge } from '../load.js';
import { excess, idealOf, onTheWay, utilisation } from '../measure/figures.js';
import { longestGap } from '../measure/sliding-span.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { Ground, oneApp } from './ground.js';
import { idealKind, type Scenario } from './scenario.js';

const SECONDS = 8;
const STEP_AT = 4;
/** A surge takes all that there is just before, so that whatever the step frees comes on top. */
const SURGE_AT = STEP_AT - 0.15;

function clockJump(name: string, bySeconds: number, about: string): Scenario {
  return {
    name,
    about,
    async run(setting) {
      const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
      const faults = [clockStep(STEP_AT, bySeconds)];
      const rates = ground.rates(surge(0.3, 3, SURGE_AT));
      const plan = ground.plan(SECONDS, rates, even(ground.nodes), faults);
      const run = await runPlan(plan, WEIR);
      const ideal = idealOf(plan, run.offered, idealKind(setting));
      const findings = new Findings(name);
      const bound = (bySeconds > 0 ? ground.depth : 0) + onTheWay(ground.figures);
      findings.atMost('weir', 'tokens beyond C·Δ + B', excess(plan, run), bound);
      findings.show('weir', 'utilisation', utilisation(run, ideal));
      findings.show('weir', 'longest time without a pass, s', longestGap(run.admitted.at, SECONDS));
      return { rows: findings.rows, chart: tokenChart(`${name}: ${about}`, plan, run, ideal) };
    },
  };
}

export const CLOCK_FORWARD = clockJump('clock-forward', 30, "the store's clock jumps 30 s ahead");
export const CLOCK_BACK = clockJump('clock-back', -2, "the store's clock jumps 2 s back");
