import {
  CALL_PER_REQUEST,
  FIXED_SPLIT,
  PLAIN_LEASE,
} from '../../../lib/cli/simulator/baselines.js';
import { type Contender } from '../../../lib/cli/simulator/engine/contender.js';
import { runPlan, type RunPlan, type RunRecord } from '../../../lib/cli/simulator/engine/run.js';
import { WEIR } from '../../../lib/cli/simulator/engine/weir.js';
import { even, zipf, type Placement } from '../../../lib/cli/simulator/load.js';
import {
  idealOf,
  localPart,
  utilisation,
  worstIn,
} from '../../../lib/cli/simulator/measure/figures.js';
import { Ground, oneApp } from '../../../lib/cli/simulator/scenarios/ground.js';

const ground = new Ground({ seed: 7 }, { quota: oneApp(2000), nodes: 10 });
const planOf = (load: number, place: Placement): RunPlan =>
  ground.plan(4, ground.rates(load), place);

async function usedBy(
  contender: Contender,
  plan: RunPlan,
): Promise<{ run: RunRecord; used: number }> {
  const run = await runPlan(plan, contender);
  return { run, used: utilisation(run, idealOf(plan, run.offered, 'bucket')) };
}

describe('the baselines', () => {
  it('get the same requests as weir does', async () => {
    const plan = planOf(1.3, even(10));
    const weir = await runPlan(plan, WEIR);
    for (const contender of [CALL_PER_REQUEST, FIXED_SPLIT, PLAIN_LEASE]) {
      expect((await runPlan(plan, contender)).offered).toEqual(weir.offered);
    }
  });

  it('a call per request is as good as the ideal, and never local', async () => {
    const { run, used } = await usedBy(CALL_PER_REQUEST, planOf(1.3, zipf(10)));
    expect(used).toBeCloseTo(1, 2);
    expect(localPart(run)).toBe(0);
    expect(run.calls).toHaveLength(run.decisions);
  });

  it('a fixed split is always local, never calls, and wastes what busy nodes could use', async () => {
    const { run, used } = await usedBy(FIXED_SPLIT, planOf(1, zipf(10)));
    expect(used).toBeLessThan(0.8);
    expect(localPart(run)).toBe(1);
    expect(run.calls).toEqual([]);
    expect((await usedBy(FIXED_SPLIT, planOf(1.5, even(10)))).used).toBeGreaterThan(0.97);
  });

  it('a plain lease keeps the cap, but calls far more often than weir when there is too little', async () => {
    const plan = planOf(1.5, even(10));
    const [plain, weir] = [await runPlan(plan, PLAIN_LEASE), await runPlan(plan, WEIR)];
    expect(worstIn(plan, plain, 1)).toBeLessThanOrEqual(1);
    expect(plain.calls.length).toBeGreaterThan(5 * weir.calls.length);
    expect(localPart(plain)).toBeLessThan(0.6);
  });
});

describe('a run', () => {
  it('is the same with the same seed, and another one with another', async () => {
    const again = (seed: number): Promise<RunRecord> => {
      const own = new Ground({ seed }, { quota: oneApp(2000), nodes: 10 });
      return runPlan(own.plan(2, own.rates(1.3), even(10)), WEIR);
    };
    expect(await again(1)).toEqual(await again(1));
    expect((await again(1)).admitted).not.toEqual((await again(2)).admitted);
  });

  it('lets one request stand for many where the cluster is large, with the same result', async () => {
    const large = new Ground({ seed: 7 }, { quota: oneApp(100_000), nodes: 10 });
    expect(large.cost).toBe(10);
    const plan = large.plan(3, large.rates(1.3), even(10));
    const { run, used } = await usedBy(WEIR, plan);
    expect((run.admitted.at.length * plan.cost) / 3).toBeGreaterThan(98_000);
    expect(used).toBeGreaterThan(0.97);
    expect(worstIn(plan, run, 1)).toBeLessThanOrEqual(1);
  });
});
