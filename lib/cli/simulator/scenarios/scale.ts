import { join } from '../engine/faults.js';
import { runPlan } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import { even, type Placement } from '../load.js';
import { callsPerSecond, idealOf, localPart, utilisation } from '../measure/figures.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { addCap, addFigures, compare } from './compare.js';
import { Ground, oneApp } from './ground.js';
import { callsBar, localBar, notPromised, utilisationBar } from './promises.js';
import { idealKind, type Scenario, type Setting } from './scenario.js';

const LOAD = 1.3;
const STEADY_SECONDS = 12;
const GROWTH_SECONDS = 12;
const GROWN_AT = 8;
const SIZES = [1, 10, 100];

export const SCALE: Scenario = {
  name: 'scale',
  about: 'one node, ten, a hundred; and one that becomes a hundred',
  async run(setting) {
    const findings = new Findings(this.name);
    const notes: string[] = [];
    for (const nodes of SIZES) notes.push(...(await addSize(findings, setting, nodes)));
    const most = SIZES.at(-1)!;
    const ground = new Ground({ ...setting, nodes: 1 }, { quota: oneApp(), nodes: 1 });
    const joins = Array.from({ length: most - 1 }, (_, i) => {
      return join(((i + 1) * GROWN_AT) / most, i + 1);
    });
    const plan = {
      ...ground.plan(GROWTH_SECONDS, ground.rates(LOAD), growing(most), joins),
      plannedNodes: most,
    };
    const made = await compare(plan, setting);
    const grown = new Ground({ ...setting, nodes: most }, { quota: oneApp(), nodes: most });
    addFigures(findings, made, { utilisation: utilisationBar(grown, 0.99) });
    const title = `${this.name}: one node becomes a hundred`;
    return { rows: findings.rows, chart: tokenChart(title, plan, made.weir, made.ideal), notes };
  },
};

/** Traffic goes evenly to the nodes that are there by then. */
function growing(most: number): Placement {
  return (second, draw) => {
    const there = Math.min(most, 1 + Math.floor((second * most) / GROWN_AT));
    return Math.floor(draw * there);
  };
}

async function addSize(findings: Findings, setting: Setting, nodes: number): Promise<string[]> {
  const ground = new Ground({ ...setting, nodes }, { quota: oneApp(), nodes });
  const plan = ground.plan(STEADY_SECONDS, ground.rates(LOAD), even(nodes));
  const run = await runPlan(plan, WEIR);
  const ideal = idealOf(plan, run.offered, idealKind(setting));
  const of = `, ${nodes} ${nodes === 1 ? 'node' : 'nodes'}`;
  const used = utilisation(run, ideal);
  findings.atLeastIf('weir', `utilisation${of}`, used, utilisationBar(ground, 0.99));
  const calls = callsPerSecond(run, 0, STEADY_SECONDS);
  findings.atMost('weir', `store calls per second${of}`, calls, callsBar(ground, LOAD));
  findings.atLeastIf('weir', `local decisions${of}`, localPart(run), localBar(ground));
  addCap(findings, plan, run, 'kept', of);
  return notPromised(ground, of);
}
