import { outage } from '../engine/faults.js';
import { even } from '../load.js';
import { callsPerSecond } from '../measure/figures.js';
import { countBetween } from '../measure/sliding-span.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { addFigures, compare } from './compare.js';
import { Ground, oneApp } from './ground.js';
import { callsBar } from './promises.js';
import { type Scenario } from './scenario.js';

const SECONDS = 16;
const LOAD = 1.5;
const [FROM, TO] = [5, 10];
/** Nodes look for the store every two seconds at least, and a little later. */
const BACK_AT = 13;
/** The part of the guarantees that may be admitted without the store; not imported, so that a judge does not follow what it judges. */
const OFFLINE_PART = 0.9;

function storeOutage(name: string, kind: 'silent' | 'refused', about: string): Scenario {
  return {
    name,
    about,
    async run(setting) {
      const ground = new Ground(setting, { quota: oneApp(10_000, 0.9), nodes: 20 });
      const faults = outage(FROM, TO, kind);
      const plan = ground.plan(SECONDS, ground.rates(LOAD), even(ground.nodes), faults);
      const made = await compare(plan, setting);
      const findings = new Findings(name);
      const atRate = OFFLINE_PART * (ground.capacity * (TO - FROM) + ground.depth);
      const bound = atRate + ground.nodes * ground.figures.maxCost;
      for (const run of [made.weir, ...made.baselines]) {
        const admitted = countBetween(run.admitted.at, FROM, TO) * plan.cost;
        const figure = 'admitted while the store is away';
        if (run === made.weir) findings.atMost(run.contender, figure, admitted, bound);
        else findings.show(run.contender, figure, admitted);
      }
      const figure = 'store calls per second once it is back';
      const calls = callsPerSecond(made.weir, BACK_AT, SECONDS);
      findings.atMost('weir', figure, calls, callsBar(ground, LOAD));
      addFigures(findings, made, {});
      const chart = tokenChart(`${name}: ${about}`, plan, made.weir, made.ideal);
      return { rows: findings.rows, chart };
    },
  };
}

export const OUTAGE = storeOutage('outage', 'silent', 'for five seconds the store says nothing');
export const REFUSAL = storeOutage(
  'refusal',
  'refused',
  'for five seconds there is no connection to the store',
);
