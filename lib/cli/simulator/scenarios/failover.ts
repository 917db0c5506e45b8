import { noWitness, promotion, stateLoss, type Fault } from '../engine/faults.js';
import { runPlan } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import { even, surge } from '../load.js';
import { excess, idealOf, utilisation } from '../measure/figures.js';
import { tokenChart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { Ground, oneApp } from './ground.js';
import { idealKind, type Scenario } from './scenario.js';

const SECONDS = 8;
const AT = 4;
/** A surge takes all that there is just before, so that whatever the loss frees comes on top. */
const SURGE_AT = AT - 0.15;
const LAG_SECONDS = 1;

interface Loss {
  readonly faults: readonly Fault[];
  /** Tokens beyond the cap that the design allows for. */
  readonly bound: (ground: Ground) => number;
}

function storeLoss(name: string, about: string, { faults, bound }: Loss): Scenario {
  return {
    name,
    about,
    async run(setting) {
      const ground = new Ground(setting, { quota: oneApp(), nodes: 20 });
      const rates = ground.rates(surge(0.3, 3, SURGE_AT));
      const plan = ground.plan(SECONDS, rates, even(ground.nodes), faults);
      const run = await runPlan(plan, WEIR);
      const ideal = idealOf(plan, run.offered, idealKind(setting));
      const findings = new Findings(name);
      findings.atMost('weir', 'tokens beyond C·Δ + B', excess(plan, run), bound(ground));
      findings.show('weir', 'utilisation', utilisation(run, ideal));
      return { rows: findings.rows, chart: tokenChart(`${name}: ${about}`, plan, run, ideal) };
    },
  };
}

/** Nodes that have seen the state tell of the loss with their first call. */
function detected({ capacity, paceSeconds, figures }: Ground): number {
  return Math.max(capacity * paceSeconds, figures.maxCost);
}

export const FAILOVER = storeLoss('failover', 'the store loses its state', {
  faults: [stateLoss(AT)],
  bound: detected,
});

export const PROMOTION = storeLoss('promotion', 'a replica one second behind takes over', {
  faults: promotion(AT, LAG_SECONDS),
  bound: detected,
});

export const UNNOTICED_PROMOTION = storeLoss(
  'unnoticed-promotion',
  'the same, and no node is left that could tell',
  {
    faults: [noWitness(), ...promotion(AT, LAG_SECONDS)],
    bound: ({ depth, capacity }) => depth + capacity * LAG_SECONDS,
  },
);
