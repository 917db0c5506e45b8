import { compileQuota, type QuotaFigures } from '../../../algorithms/quota/quota-limits.js';
import { weightedShares } from '../../../algorithms/quota/weighted-share.js';
import { checkQuota, type QuotaSettings } from '../../../limiter/quota-options.js';
import { type Requests } from '../engine/observations.js';
import { runPlan, type RunPlan, type RunRecord } from '../engine/run.js';
import { WEIR } from '../engine/weir.js';
import { even } from '../load.js';
import { deficit, inversions, latenessOfGuarantee } from '../measure/guarantee.js';
import { IdealBucket } from '../measure/ideal.js';
import { bucketPanel, ratePanel, ratePoints, type Chart } from '../report/chart.js';
import { Findings } from '../report/findings.js';
import { addCap } from './compare.js';
import { Ground } from './ground.js';
import { type Scenario } from './scenario.js';

const SECONDS = 9;
const WAKES_AT = 3;
/** Shares are settled by then. */
const SETTLED_AT = 5;
/** Whether a guarantee is late is seen in the first second. */
const SHORT_SECONDS = 4.5;
/** Requests per second. */
const LEAST_SHARE = 400;

export const PRIORITY: Scenario = {
  name: 'priority',
  about: 'all apps ask for more than there is, and each in turn begins three seconds later',
  async run(setting) {
    const ground = new Ground(setting, { quota: fourApps(), nodes: 20 });
    const findings = new Findings(this.name);
    const charts: Chart[] = [];
    for (const [sleeper, { app }] of ground.figures.apps.entries()) {
      const plan = planWith(ground, sleeper, sleeper === 0 ? SECONDS : SHORT_SECONDS);
      const run = await runPlan(plan, WEIR);
      addWaking(findings, plan, run, sleeper);
      charts.push(chartOf(`${this.name}: ${app} wakes up`, plan, run));
      if (sleeper > 0) continue;
      addGuarantees(findings, plan, run);
      addShares(findings, plan, run);
      addCap(findings, plan, run, 'kept');
    }
    return { rows: findings.rows, chart: charts[0]! };
  },
};

function fourApps(): QuotaSettings {
  const app = { guaranteed: 1000, burst: 10_000, burstDuration: '1s' } as const;
  return checkQuota({
    cluster: { capacity: 10_000 },
    apps: {
      checkout: { ...app, priority: 0 },
      search: { ...app, priority: 1 },
      feed: { ...app, priority: 2 },
      reports: { ...app, priority: 3 },
    },
  });
}

/** Half the capacity each, or twice the guarantee, as far as the ceiling goes. */
function demandsOf({ cluster, apps }: QuotaFigures): number[] {
  const half = cluster!.capacity / 2;
  return apps.map(({ guaranteed, burst }) => Math.min(burst, Math.max(half, 2 * guaranteed)));
}

function planWith(ground: Ground, sleeper: number, seconds: number): RunPlan {
  const { figures, cost, nodes } = ground;
  const demands = demandsOf(figures).map((demand) => demand / cost);
  const rates = (second: number): number[] =>
    demands.map((demand, app) => (app === sleeper && second < WAKES_AT ? 0 : demand));
  const { app } = figures.apps[sleeper]!;
  const wakesUp = { second: WAKES_AT, label: `${app} wakes up`, strike: () => {} };
  return ground.plan(seconds, rates, even(nodes), [wakesUp]);
}

function chartOf(title: string, plan: RunPlan, run: RunRecord): Chart {
  const series = plan.quota.figures.apps.map(({ app, priority }, index) => ({
    name: `${app} (priority ${priority})`,
    points: ratePoints(timesOf(run.admitted, index), plan),
  }));
  return { title, panels: [ratePanel(plan, series), bucketPanel(plan, run)] };
}

function timesOf({ at, app }: Requests, index: number): number[] {
  return at.filter((_, i) => app[i] === index);
}

function addWaking(findings: Findings, plan: RunPlan, run: RunRecord, sleeper: number): void {
  const { apps, paceMs } = plan.quota.figures;
  const { app, guaranteed } = apps[sleeper]!;
  const since = (of: Requests): number[] => timesOf(of, sleeper).map((at) => at - WAKES_AT);
  const rate = guaranteed / plan.cost;
  const seconds = latenessOfGuarantee(
    coveredBy(rate, since(run.offered)),
    since(run.admitted),
    rate,
  );
  // One pace; or one request of an app that has few.
  const bar = Math.max(paceMs, 1000 / rate);
  findings.atMost('weir', `ms that the guarantee is late, ${app} wakes up`, seconds * 1000, bar);
}

function addGuarantees(findings: Findings, plan: RunPlan, run: RunRecord): void {
  for (const [index, { app, guaranteed }] of plan.quota.figures.apps.entries()) {
    const rate = guaranteed / plan.cost;
    const covered = coveredBy(rate, timesOf(run.offered, index));
    const missing = deficit(covered, timesOf(run.admitted, index), rate, plan.seconds);
    // A hundredth, or the lease that a small app may be behind: one request in a second.
    const bar = Math.max(0.01, 1 / rate);
    findings.atMost('weir', `guarantee deficit, ${app}`, missing, bar);
  }
}

/** Of the requests, those that a bucket of the guarantee alone has a token for. */
function coveredBy(rate: number, offered: readonly number[]): number[] {
  const bucket = new IdealBucket(rate, 1);
  return offered.filter((second) => bucket.take(1, second));
}

function addShares(findings: Findings, plan: RunPlan, run: RunRecord): void {
  const { quota, cost, seconds } = plan;
  const limits = compileQuota(quota.figures);
  const demands = demandsOf(quota.figures);
  const claims = limits.apps.map(({ guaranteed, burst, weight }, index) => {
    return { demand: demands[index]!, guaranteed, burst, weight };
  });
  const shares = weightedShares(claims, limits.capacity);
  const parties = quota.figures.apps.map(({ app, priority }, index) => {
    const at = timesOf(run.admitted, index).filter((second) => second >= SETTLED_AT);
    const share = shares[index]! / cost;
    findings.show('weir', `admitted / share, ${app}`, at.length / share / (seconds - SETTLED_AT));
    return { priority, share, at };
  });
  // Of smaller shares a second is no measure: requests come at random.
  const large = parties.filter(({ share }) => share >= LEAST_SHARE);
  if (large.length < 2) return;
  findings.atMost('weir', 'priority inversions', inversions(large, SETTLED_AT, seconds), 0);
}
