import { runPlan } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import { even } from '../load.js';
import { localPart } from '../measure/figures.js';
import { type Point } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { Ground, oneApp, tokensPerNode } from './ground.js';
import { localBar } from './promises.js';
import { type Scenario, type Setting } from './scenario.js';

const SECONDS = 6;
/** Tokens per node and horizon, C × horizon / N. */
const TOKENS_PER_NODE = [0.5, 1, 2, 3, 5, 10, 20, 50, 100];
/** Below saturation, from so many on, all but one decision in a thousand are local. */
const TOKENS_FOR_ALL = 20;
const MOST_NODES = 1000;
const BELOW_SATURATION = 0.7;
const SATURATED = 1.3;

export const LOCAL_CURVE: Scenario = {
  name: 'local-curve',
  about: 'the part of local decisions over C × horizon / N',
  async run(setting) {
    const findings = new Findings(this.name);
    const below: Point[] = [];
    const above: Point[] = [];
    for (const nodes of fleetSizes(setting)) {
      const ground = groundOf(setting, nodes);
      const tokens = tokensPerNode(ground);
      const at = ` at C·h/N = ${Number(tokens.toPrecision(3))}`;
      const quiet = await localAt(ground, BELOW_SATURATION);
      below.push([tokens, quiet]);
      const bar = tokens >= TOKENS_FOR_ALL ? 0.999 : localBar(ground);
      findings.atLeastIf('weir', `below saturation${at}`, quiet, bar);
      const busy = await localAt(ground, SATURATED);
      above.push([tokens, busy]);
      findings.atLeastIf('weir', `saturated${at}`, busy, localBar(ground));
    }
    const series = [
      { name: `at ${BELOW_SATURATION} C`, points: below },
      { name: `at ${SATURATED} C`, points: above },
    ];
    const axes = { xLabel: 'C × horizon / N', yLabel: 'local decisions', xScale: 'log' } as const;
    const chart = { title: `${this.name}: ${this.about}`, panels: [{ ...axes, series }] };
    return { rows: findings.rows, chart };
  },
};

/** From many nodes to few, so that the curve rises. */
function fleetSizes(setting: Setting): number[] {
  const all = tokensPerNode(groundOf(setting, 1));
  const sizes = TOKENS_PER_NODE.map((tokens) => Math.floor(all / tokens));
  return [...new Set(sizes)].filter((nodes) => nodes >= 1 && nodes <= MOST_NODES);
}

function groundOf(setting: Setting, nodes: number): Ground {
  return new Ground({ ...setting, nodes }, { quota: oneApp(), nodes });
}

async function localAt(ground: Ground, load: number): Promise<number> {
  const plan = ground.plan(SECONDS, ground.rates(load), even(ground.nodes));
  return localPart(await runPlan(plan, WEIR));
}
