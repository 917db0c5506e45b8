import { type RunPlan } from '../engine/run.js';
import { even, movingHotspot, pulse, surge, zipf } from '../load.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { addFigures, compare, type Promises } from './compare.js';
import { Ground, oneApp } from './ground.js';
import { callsBar, localBar, notPromised, utilisationBar } from './promises.js';
import { type Scenario, type ScenarioReport, type Setting } from './scenario.js';

const SECONDS = 12;

/** Where only the load matters: everybody goes through it, and weir has to keep these promises. */
async function contest(
  { name, about }: Scenario,
  setting: Setting,
  ground: Ground,
  plan: RunPlan,
  promises: Promises,
): Promise<ScenarioReport> {
  const findings = new Findings(name);
  const made = await compare(plan, setting);
  addFigures(findings, made, promises);
  return {
    rows: findings.rows,
    chart: tokenChart(`${name}: ${about}`, plan, made.weir, made.ideal),
    notes: notPromised(ground),
  };
}

export const SKEW: Scenario = {
  name: 'skew',
  about: 'demand as large as the capacity, Zipf over the nodes',
  run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
    const plan = ground.plan(SECONDS, ground.rates(1), zipf(ground.nodes));
    const utilisation = utilisationBar(ground, 0.99);
    return contest(this, setting, ground, plan, { utilisation, local: localBar(ground) });
  },
};

export const SKEW_OVERLOAD: Scenario = {
  name: 'skew-overload',
  about: 'half as much again as the capacity, Zipf over the nodes',
  run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
    const plan = ground.plan(SECONDS, ground.rates(1.5), zipf(ground.nodes));
    const utilisation = utilisationBar(ground, 0.99);
    const [local, calls] = [localBar(ground), callsBar(ground, 1.5)];
    return contest(this, setting, ground, plan, { utilisation, local, calls });
  },
};

export const HOTSPOT: Scenario = {
  name: 'hotspot',
  about: 'four fifths of the demand on one node, another one every half second',
  run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
    const [moveSeconds, hot] = [0.5, 0.8];
    const slot = movingHotspot(ground.nodes, moveSeconds, hot);
    const plan = ground.plan(SECONDS, ground.rates(0.9), slot);
    const utilisation = utilisationBar(ground, 0.99);
    const local = localBar(ground, (hot * ground.paceSeconds) / moveSeconds);
    return contest(this, setting, ground, plan, { utilisation, local });
  },
};

export const BURST: Scenario = {
  name: 'burst',
  about: 'nothing for two seconds, then ten times the capacity for two',
  run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 50 });
    const plan = ground.plan(6, ground.rates(pulse(10, 2, 4)), even(ground.nodes));
    const utilisation = utilisationBar(ground, 0.97);
    return contest(this, setting, ground, plan, { utilisation, local: localBar(ground) });
  },
};

export const SURGE: Scenario = {
  name: 'surge',
  about: 'full buckets and leases in all nodes, then five times the capacity at once',
  run(setting) {
    const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
    const plan = ground.plan(8, ground.rates(surge(0.7, 5, 4)), even(ground.nodes));
    return contest(this, setting, ground, plan, { local: localBar(ground) });
  },
};

export const LOW_LIMIT: Scenario = {
  name: 'low-limit',
  about: 'twice a limit that is low for so many nodes',
  run(setting) {
    const own = new Ground(setting, { quota: oneApp(500), nodes: 100 });
    const nodes = setting.nodes ?? Math.min(400, Math.max(2, Math.ceil(own.capacity / 5)));
    const ground = new Ground({ ...setting, nodes }, { quota: oneApp(500), nodes });
    const plan = ground.plan(SECONDS, ground.rates(2), even(nodes));
    const utilisation = utilisationBar(ground, 0.99);
    return contest(this, setting, ground, plan, { utilisation, calls: callsBar(ground, 2) });
  },
};
