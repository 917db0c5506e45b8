import { SCENARIOS } from '../../../lib/cli/simulator/scenarios/index.js';
import { type FigureRow } from '../../../lib/cli/simulator/report/findings.js';
import { toSvg } from '../../../lib/cli/simulator/report/svg.js';
import { type ScenarioReport } from '../../../lib/cli/simulator/scenarios/scenario.js';

const reports = new Map<string, Promise<ScenarioReport>>();

/** Each of them once; without the baselines, which have a spec of their own. */
function run(name: string): Promise<ScenarioReport> {
  const scenario = SCENARIOS.find((one) => one.name === name)!;
  const report = reports.get(name) ?? scenario.run({ seed: 7, against: [] });
  reports.set(name, report);
  return report;
}

const missed = (rows: readonly FigureRow[]): FigureRow[] => rows.filter(({ ok }) => ok === false);
const valueOf = (rows: readonly FigureRow[], figure: string): number =>
  rows.find((row) => row.contender === 'weir' && row.figure === figure)!.value;

describe('weir keeps its promises', () => {
  // Load shapes alone are in local-tier.spec.ts; the longest curves are for the command.
  it.each([
    ['surge', 5],
    ['churn', 6],
    ['outage', 5],
    ['refusal', 5],
    ['priority', 12],
    ['halved', 5],
    ['clock-forward', 1],
    ['clock-back', 1],
    ['failover', 1],
    ['promotion', 1],
    ['unnoticed-promotion', 1],
  ])('in the scenario %s, of which there are %d at least', async (name, bars) => {
    const { rows, chart } = await run(name);
    expect(missed(rows)).toEqual([]);
    expect(rows.filter(({ ok }) => ok !== null).length).toBeGreaterThanOrEqual(bars);
    expect(toSvg(chart)).not.toMatch(/NaN|Infinity|undefined/);
  });
});

describe('the faults are felt', () => {
  it('a clock that jumps ahead frees tokens, one that jumps back holds nobody up', async () => {
    const { rows: forward } = await run('clock-forward');
    expect(valueOf(forward, 'tokens beyond C·Δ + B')).toBeGreaterThan(100);
    const { rows: back } = await run('clock-back');
    expect(valueOf(back, 'longest time without a pass, s')).toBeLessThan(0.1);
  });

  it('a promotion that nobody can tell of admits what one that is noticed does not', async () => {
    const [noticed, unnoticed] = [await run('promotion'), await run('unnoticed-promotion')];
    expect(valueOf(noticed.rows, 'tokens beyond C·Δ + B')).toBeLessThanOrEqual(500);
    expect(valueOf(unnoticed.rows, 'tokens beyond C·Δ + B')).toBeGreaterThan(500);
  });
});

describe('the list', () => {
  it('has names that are short, different, and good for a file', () => {
    const names = SCENARIOS.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
    for (const name of names) expect(name).toMatch(/^[a-z-]{3,24}$/);
  });
});
