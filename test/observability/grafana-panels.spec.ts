import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as histogram from '../../lib/common/histogram.js';
import * as fallbackChain from '../../lib/degradation/core/fallback-chain.js';
import * as quotaLimits from '../../lib/algorithms/quota/quota-limits.js';
import * as weightedShare from '../../lib/algorithms/quota/weighted-share.js';
import * as alerting from '../../lib/observability/alerts/alerting.js';
import * as fleet from '../../lib/observability/fleet/fleet.js';
import * as monitor from '../../lib/observability/monitor.js';
import * as monitorOptions from '../../lib/observability/monitor-options.js';
import * as sources from '../../lib/observability/sources.js';
import * as resourceStats from '../../lib/protection/resource-stats.js';
import * as requestCounts from '../../lib/requests/request-counts.js';
import * as memoryBoard from '../../lib/stores/memory/memory-board.js';
import * as wire from '../../lib/stores/redis/wire.js';
import * as manualClock from '../../lib/testing/manual-clock.js';
import { readPage } from '../package/markdown.js';
import { root } from '../setup/ensure-built.js';

interface Panel {
  readonly type: string;
  readonly title: string;
  readonly targets?: readonly { readonly expr: string }[];
}

interface Dashboard {
  readonly panels: readonly Panel[];
  readonly templating: { readonly list: readonly unknown[] };
}

interface Pictures {
  filledIn(expr: string, variables: readonly unknown[]): string;
  panelPictures(library: object, dashboard: Dashboard): Promise<Record<string, string>>;
}

const BUSY_MS = 300_000;

describe('the panels of the dashboard for Grafana', () => {
  const dashboard = JSON.parse(
    readFileSync(join(root, 'ops/grafana-dashboard.json'), 'utf8'),
  ) as Dashboard;
  const script = (name: string): Promise<unknown> => import(join(root, 'scripts/support', name));
  const titles = dashboard.panels.filter(({ type }) => type !== 'row').map(({ title }) => title);

  it('ask in PromQL, by the check of promtool', async () => {
    const { filledIn } = (await script('panels/pictures.mjs')) as Pictures;
    const { ensurePromtool } = (await script('tools.mjs')) as { ensurePromtool(): string };
    const queries = dashboard.panels.flatMap(({ targets = [] }) => targets);
    expect(queries.length).toBeGreaterThan(titles.length);
    const rules = queries.map(({ expr }, place) => {
      const query = filledIn(expr, dashboard.templating.list);
      expect(query).not.toContain('$');
      return `  - record: panel_${place}\n    expr: ${JSON.stringify(query)}\n`;
    });
    const folder = mkdtempSync(join(tmpdir(), 'weir-panels-'));
    try {
      const file = join(folder, 'panels.yml');
      writeFileSync(file, `groups:\n- name: panels\n  rules:\n${rules.join('')}`);
      const { status, stdout, stderr } = spawnSync(ensurePromtool(), ['check', 'rules', file], {
        encoding: 'utf8',
      });
      expect({ status, said: stdout + stderr }).toMatchObject({
        status: 0,
        said: expect.stringContaining(`SUCCESS: ${queries.length} rules found`) as string,
      });
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it(
    'all have something to show, by a real Prometheus that has scraped a fleet',
    async () => {
      const { panelPictures } = (await script('panels/pictures.mjs')) as Pictures;
      const library = {
        ...{ ...histogram, ...fallbackChain, ...quotaLimits, ...weightedShare, ...alerting },
        ...{ ...fleet, ...monitor, ...monitorOptions, ...sources, ...resourceStats },
        ...{ ...requestCounts, ...memoryBoard, ...wire, ...manualClock },
      };
      const pictures = await panelPictures(library, dashboard);
      // Another version of Prometheus may have other figures, a little; names do not change.
      const namesIn = (svg: string) =>
        [...svg.matchAll(/<text[^>]*>([^<]*)</g)]
          .map(([, words]) => words!)
          .filter((words) => !/^\d/.test(words));
      const all = Object.values(pictures).flatMap(namesIn);
      expect(titles.filter((title) => !all.includes(title))).toEqual([]);
      for (const [row, picture] of Object.entries(pictures)) {
        const kept = readPage(`docs/grafana-${row}.svg`);
        const told = 'the picture in docs/ is of another dashboard: run npm run pictures';
        expect(new Set(namesIn(kept)), told).toEqual(new Set(namesIn(picture)));
      }
    },
    BUSY_MS,
  );
});
