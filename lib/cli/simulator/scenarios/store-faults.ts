import { clockStep, noWitness, promotion, stateLoss, type Fault } from '../engine/faults.js';
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
const AT = 4;
/** A surge takes all that there is just before, so that whatever the fault frees comes on top. */
const SURGE_AT = AT - 0.15;
const LAG_SECONDS = 1;

interface StoreFault {
  readonly faults: readonly Fault[];
  /** Tokens beyond the cap that the design allows for. */
  readonly bound: (ground: Ground) => number;
}

function storeFault(name: string, about: string, { faults, bound }: StoreFault): Scenario {
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
      findings.show('weir', 'longest time without a pass, s', longestGap(run.admitted.at, SECONDS));
      return { rows: findings.rows, chart: tokenChart(`${name}: ${about}`, plan, run, ideal) };
    },
  };
}

/** Nodes that have seen the state tell of the loss with their first call. */
function detected({ capacity, paceSeconds, figures }: Ground): number {
  return Math.max(capacity * paceSeconds, figures.maxCost);
}

export const FAILOVER = storeFault('failover', 'the store loses its state', {
  faults: [stateLoss(AT)],
  bound: detected,
});

export const PROMOTION = storeFault('promotion', 'a replica one second behind takes over', {
  faults: promotion(AT, LAG_SECONDS),
  bound: detected,
});

export const UNNOTICED_PROMOTION = storeFault(
  'unnoticed-promotion',
  'the same, and no node is left that could tell',
  {
    faults: [noWitness(), ...promotion(AT, LAG_SECONDS)],
    bound: ({ depth, capacity }) => depth + capacity * LAG_SECONDS,
  },
);

function clockJump(name: string, bySeconds: number, about: string): Scenario {
  return storeFault(name, about, {
    faults: [clockStep(AT, bySeconds)],
    bound: ({ depth, figures }) => (bySeconds > 0 ? depth : 0) + onTheWay(figures),
  });
}

export const CLOCK_FORWARD = clockJump('clock-forward', 30, "the store's clock jumps 30 s ahead");
export const CLOCK_BACK = clockJump('clock-back', -2, "the store's clock jumps 2 s back");
