import { crash, join, leave, type Fault } from '../engine/faults.js';
import { even } from '../load.js';
import { seededRandom } from '../engine/seeded-random.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { addFigures, compare } from './compare.js';
import { Ground, oneApp } from './ground.js';
import { localBar, notPromised, utilisationBar } from './promises.js';
import { type Scenario } from './scenario.js';

const SECONDS = 16;
/** How long a node lives until it is restarted, as in a deployment, and until it crashes. */
const SECONDS_TO_RESTART = 20;
const SECONDS_TO_CRASH = 160;
const AWAY_SECONDS = 0.7;

export const CHURN: Scenario = {
  name: 'churn',
  about: 'nodes leave and join all the time, and some crash',
  async run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 40 });
    const faults = comings(ground.nodes, setting.seed);
    const plan = ground.plan(SECONDS, ground.rates(1.2), even(ground.nodes), faults);
    const made = await compare(plan, setting);
    const findings = new Findings(this.name);
    const utilisation = utilisationBar(ground, 0.98);
    addFigures(findings, made, { utilisation, local: localBar(ground) });
    const chart = tokenChart(`${this.name}: ${this.about}`, plan, made.weir, made.ideal);
    return { rows: findings.rows, chart, notes: notPromised(ground) };
  },
};

function comings(nodes: number, seed: number): Fault[] {
  const random = seededRandom(seed + 3);
  const anySlot = (): number => Math.floor(random() * nodes);
  const faults: Fault[] = [];
  for (let at = 1; at < SECONDS - 1; at += SECONDS_TO_RESTART / nodes) {
    const slot = anySlot();
    faults.push(leave(at, slot), join(at + AWAY_SECONDS, slot));
  }
  for (let at = 2; at < SECONDS - 1; at += SECONDS_TO_CRASH / nodes) {
    const slot = anySlot();
    faults.push({ ...crash(at, slot), label: 'crash' }, join(at + AWAY_SECONDS, slot));
  }
  return faults;
}
