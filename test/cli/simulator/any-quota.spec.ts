import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { checkQuota, type QuotaOptions } from '../../../lib/limiter/quota-options.js';
import { SCENARIOS } from '../../../lib/cli/simulator/scenarios/index.js';
import { type FigureRow } from '../../../lib/cli/simulator/report/findings.js';
import { Ground } from '../../../lib/cli/simulator/scenarios/ground.js';
import { callsBar, localBar, notPromised } from '../../../lib/cli/simulator/scenarios/promises.js';
import {
  LOAD_SHAPES,
  randomQuota,
  runOnRandomQuota,
} from '../../../lib/cli/simulator/scenarios/random-quota.js';
import { type Scenario } from '../../../lib/cli/simulator/scenarios/scenario.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../../setup/ensure-built.js';
import { runToEnd, type Finished } from '../../setup/run-to-end.js';
import { stopAll } from '../../support/processes.js';

const missed = (rows: readonly FigureRow[]): FigureRow[] => rows.filter(({ ok }) => ok === false);
const named = (name: string): Scenario => SCENARIOS.find((one) => one.name === name)!;

// As it is built, which is what users run.
beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);
const runBuilt = (...args: string[]): Promise<Finished> =>
  runToEnd(process.execPath, [join(root, 'bin/weir.mjs'), 'simulate', ...args], { cwd: root });

describe('the quota that docs/simulator.md tries on thirty nodes', () => {
  let dir: string;
  beforeAll(() => {
    dir = mkdtempSync(join(tmpdir(), 'weir-any-quota-'));
  });
  afterAll(() => rmSync(dir, { recursive: true, force: true }));

  it('meets all bars', async () => {
    const page = readFileSync(join(root, 'docs/simulator.md'), 'utf8');
    const config = join(dir, 'quota.json');
    writeFileSync(config, /```json\n(.*?)```/s.exec(page)![1]!);
    const names = ['skew-overload', 'hotspot', 'low-limit', 'outage'];
    const { code, stdout } = await runBuilt(
      ...[config, '--nodes', '30'],
      ...names.flatMap((name) => ['--scenario', name]),
    );
    expect(stdout).toMatch(/^(\d+) of \1 bars met, 0 MISSED\.$/m);
    expect(stdout).not.toContain('not promised here');
    expect(code).toBe(0);
  });
});

describe('any quota', () => {
  it('meets all bars', async () => {
    // Others each day, the same all day long; what was missed is named in the output, seed and all.
    const seed = process.env.ANY_QUOTA_SEED ?? String(10 * Math.floor(Date.now() / 86_400_000));
    const { code, stdout } = await runBuilt('--random', '10', '--seed', seed);
    expect(stdout).toContain('10 of 10 quotas met all bars');
    expect(code).toBe(0);
  });

  const isOutside = (seed: number): boolean => {
    const { quota, nodes } = randomQuota(seed);
    return notPromised(new Ground({ quota, nodes, seed }, { quota, nodes })).length > 0;
  };
  const seeds = Array.from({ length: 600 }, (_, seed) => seed);
  const capacityOf = (seed: number): number => randomQuota(seed).quota.figures.cluster!.capacity;

  it('has bars for all but one in twenty', () => {
    const large = seeds.filter((seed) => capacityOf(seed) >= 5000);
    expect(large).toHaveLength(300);
    expect(large.filter(isOutside).length).toBeLessThanOrEqual(15);
  });

  it('and for all but one in twenty of small capacities, from ten a second on', () => {
    const small = seeds.filter((seed) => capacityOf(seed) < 5000 && capacityOf(seed) >= 10);
    expect(small.length).toBeGreaterThan(200);
    expect(small.filter(isOutside).length).toBeLessThanOrEqual(small.length / 20);
  });
});

describe('quotas that missed a bar once', () => {
  const app = (guaranteed: number, burst: number, priority: 0 | 1 | 2 | 3) => {
    return { guaranteed, burst, priority };
  };
  const seven: QuotaOptions = {
    cluster: { capacity: 26_715, reservedRatio: 0.165 },
    apps: {
      app0: app(7139, 20_242, 3),
      app1: app(2, 4, 2),
      app2: app(3197, 17_938, 3),
      app3: app(4943, 39_559, 0),
      app4: { ...app(1534, 13_366, 3), elastic: false },
      app5: app(910, 6804, 2),
      app6: app(1855, 2083, 1),
    },
  };
  const deep: QuotaOptions = {
    cluster: { capacity: 326_961, burstRatio: 1.886 },
    apps: { app0: app(118_439, 1_424_684, 0) },
  };

  it.each([
    ['a share and a reserve both kept the lowest priority from idle capacity', 'skew', seven, 7],
    ['a share that began half empty cut the lease of a hotspot', 'hotspot', deep, 41],
  ])('%s', async (_, name, options, nodes) => {
    const quota = checkQuota(options);
    const { rows } = await named(name).run({ quota, nodes, seed: 104, against: [] });
    expect(missed(rows)).toEqual([]);
  });

  const DRAWN = JSON.parse(
    readFileSync(new URL('quotas-that-missed.json', import.meta.url), 'utf8'),
  ) as { scenario: string; seed: number; nodes: number; quota: QuotaOptions }[];

  it.each(DRAWN)('drawn at random: $scenario, seed $seed', async (one) => {
    const { scenario, seed, nodes } = one;
    const quota = checkQuota(one.quota);
    const { rows } = await named(scenario).run({ quota, nodes, seed, against: [] });
    expect(missed(rows)).toEqual([]);
  });

  // Of some thirty requests the local ones were fewer by chance.
  it.each([341, 419, 579, 949])('of a small capacity, seed %d', async (seed) => {
    const { rows } = await runOnRandomQuota(seed, LOAD_SHAPES[seed % LOAD_SHAPES.length]!);
    expect(missed(rows)).toEqual([]);
  });
});

describe('one app on one node with a few requests a second', () => {
  // Of some twenty tokens one or two more or less are a tenth.
  it.each([
    ['churn', 827],
    ['churn', 2063],
    ['skew-overload', 1509],
    ['low-limit', 1509],
    ['hotspot', 4101],
  ])('uses what there is: %s, seed %d', async (name, seed) => {
    const { rows } = await runOnRandomQuota(seed, named(name));
    expect(rows.some(({ figure, bar }) => figure === 'utilisation' && bar !== undefined)).toBe(
      true,
    );
    expect(missed(rows)).toEqual([]);
  });
});

describe('what is promised', () => {
  const ground = (apps: QuotaOptions['apps'], nodes: number, burstRatio = 1.2): Ground => {
    const quota = checkQuota({ cluster: { capacity: 10_000, burstRatio }, apps });
    return new Ground({ quota, nodes, seed: 1 }, { quota, nodes });
  };
  const large = { guaranteed: 4000, burst: 9900 };
  const small = { guaranteed: 10, burst: 100 };

  it('is all of it where every app has enough on every node', () => {
    expect(notPromised(ground({ large }, 10))).toEqual([]);
    expect(localBar(ground({ large }, 10))).toBe(0.95);
    expect(localBar(ground({ large }, 10), 0.08)).toBeCloseTo(0.87);
    expect(callsBar(ground({ large }, 10), 2)).toBe(200);
  });

  it('leaves requests of an app that has too few of them to the store', () => {
    const both = ground({ large, small }, 10);
    expect(callsBar(both, 2)).toBeCloseTo(200 + 2 * 100);
    const middle = { guaranteed: 50, burst: 400 };
    // t is 1.9: of its requests one in 8 has no stock.
    expect(callsBar(ground({ large, middle }, 10), 2)).toBeCloseTo(200 + 2 * (10 / (4 * 0.05)));
    expect(localBar(both)).toBeCloseTo(0.95 * 0.99 + 0.5 * 0.01, 5);
  });

  it('is told with the reason where it is not', () => {
    expect(notPromised(ground({ large }, 3000))).toEqual([
      'utilisation, because an app has only 3.3 requests per second on a node, of 5 that it takes',
      'local decisions, because no app has more than 0.17 requests per node and horizon',
    ]);
    expect(notPromised(ground({ large }, 10, 1.1))).toEqual([
      'utilisation, because the burst is what flows in during 2.5 paces, of 4 that it takes',
    ]);
  });
});
