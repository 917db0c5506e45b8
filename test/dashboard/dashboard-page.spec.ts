import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import { RateLimitConfig } from 'nestjs-weir';
import { InProcessRedis } from 'nestjs-weir/testing';
import { type BrowserContextOptions, type Page } from 'playwright-core';
import { Dashboard } from '../../lib/dashboard/dashboard.js';
import { type PageFrame } from '../../lib/dashboard/frame.js';
import { type Alert } from '../../lib/observability/alerts/alert.js';
import { type SeriesState } from '../../lib/observability/state.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import {
  inPage,
  keepScreenshot,
  openPage,
  seriousFindings,
  type WatchedPage,
} from '../support/browser.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { crowdedFrame, HOSTILE_NAMES, hostileFrame } from './hostile-frame.js';
import { open, startOps, type OpsApp } from './ops-app.js';

let nodes: OpsApp[];
let ops: OpsApp;
let url: string;

/** Three nodes of a shop, on a Redis of their own. */
beforeAll(async () => {
  await ensureBuilt();
  const redis = new InProcessRedis();
  nodes = await Promise.all(
    ['api-1', 'api-2', 'api-3'].map((nodeId) =>
      startOps(
        'fastify',
        {
          ...{ nodeId, store: redis.store({ decisionTimeout: '5s' }) },
          monitor: { keys: 'plain' },
          overload: { enabled: true, mode: 'observe' },
          policies: {
            search: { rate: 3, period: '1h', key: { header: 'x-client' } },
            page: { rate: 1, period: '1h', key: 'global' },
          },
        },
        {
          write: { guard: open },
          actions: [
            { name: 'Ring', text: 'A bell.', run: () => 'It rang.' },
            {
              ...{ name: 'Knock', text: 'A door.', link: 'https://example.com/code/door.ts' },
              run: () => undefined,
            },
          ],
        },
      ),
    ),
  );
  ops = nodes[0]!;
  url = `${ops.url}/ops/limits/`;
  const headers = { 'x-client': 'ann' };
  for (let n = 0; n < 8; n++) await (await ops.get('/search', headers)).text();
  for (let n = 0; n < 3; n++) await (await ops.get('/page')).text();
  await (await ops.get('/stock')).text();
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await stopAll();
  await Promise.all((nodes ?? []).map(({ close }) => close()));
});

const pages: WatchedPage[] = [];
/** The page of a test; all of them have nothing to complain about. */
async function visit(hash = '', options: BrowserContextOptions = {}, at = url): Promise<Page> {
  const watched = await openPage(`${at}${hash}`, options);
  pages.push(watched);
  await watched.page.getByRole('button', { name: 'Live' }).waitFor();
  return watched.page;
}
afterEach(async () => {
  const opened = pages.splice(0);
  await Promise.all(opened.map(({ page }) => page.context().close()));
  expect(opened.flatMap(({ complaints }) => complaints)).toEqual([]);
});

const stateOf = async ({ get }: OpsApp): Promise<PageFrame> =>
  (await (await get('/ops/limits/api/state')).json()) as PageFrame;

const alertsAt = (sinceMs: number) => (rule: string): Alert => ({
  ...{ rule, series: 'total', severity: 'warning', state: 'firing', sinceMs },
  ...{ value: 2, threshold: 1, text: 'It is so.', muted: false },
  ...{ fingerprint: rule, nodeId: 'api-1', cluster: 'shop' },
}); // oxfmt-ignore

const seriesNamed = ({ state }: PageFrame, name: string): SeriesState => {
  const total = state.series.find((one) => one.name === 'total')!;
  return { ...total, name };
};

/** A frame in the place of what the application tells. */
async function tells(page: Page, frame: PageFrame): Promise<void> {
  const body = `event: state\ndata: ${JSON.stringify(frame)}\n\n`;
  await page.route('**/api/stream', (route) =>
    route.fulfill({ contentType: 'text/event-stream', body }),
  );
}

const PANELS = [
  ...['Where the tokens go', 'Alerts', 'Decisions', 'Who is limited', 'Policies', 'Resources'],
  ...['Fleet', 'Overload of this process', 'Configuration', 'Capacity'],
];
const VIEWS = ['Overview', 'Policies', 'Fleet', 'Resources', 'Config', 'Capacity'];

const heading = (page: Page, name: string) => page.getByRole('heading', { name, exact: true });

async function goTo(page: Page, view: string): Promise<void> {
  await page.getByRole('link', { name: view, exact: true }).click();
  if (view !== 'Overview') {
    await heading(page, view === 'Config' ? 'Configuration' : view)
      .first()
      .waitFor();
  }
}

/** Nothing but tables and the tabs may be wider than the screen, and those scroll by themselves. */
const widthOf = (page: Page) => inPage(page, 'document.documentElement.scrollWidth');

const editor = (page: Page) => page.getByLabel('The configuration, as JSON or YAML');
const applyButton = (page: Page) => page.getByRole('button', { name: /^Apply to/ });

/** The editor is there before what it edits has come. */
const documentIn = (page: Page): Promise<string> =>
  until(async () => (await editor(page).inputValue()) || undefined, { what: 'the document' });

describe('the page, in a browser', () => {
  it('is small', () => {
    const folder = join(root, 'assets/dashboard');
    const zipped = readdirSync(folder).map((name) => readFileSync(join(folder, name)));
    const bytes = (files: readonly Buffer[]): number =>
      files.reduce((sum, { length }) => sum + length, 0);
    expect(zipped.length).toBeGreaterThan(3);
    expect(bytes(zipped.map((file) => gunzipSync(file)))).toBeLessThanOrEqual(110_000);
    expect(bytes(zipped)).toBeLessThanOrEqual(45_000);
  });

  it.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
    ['dark', 390],
  ] as const)(
    'shows every panel, %s, at %i px, and can be read by everybody',
    async (theme, width) => {
      const page = await visit('', { colorScheme: theme, viewport: { width, height: 900 } });
      for (const name of PANELS) await heading(page, name).waitFor();
      expect(await inPage(page, 'document.documentElement.dataset.theme')).toBe(theme);
      expect(await widthOf(page)).toBeLessThanOrEqual(width);
      // Names of views are not broken, and none is beyond the edge, where nobody looks for it.
      expect(
        await inPage(page, "document.querySelector('.tabs').parentNode.scrollWidth"),
      ).toBeLessThan(width);
      expect(await inPage(page, "document.querySelector('.tabs').offsetHeight")).toBeLessThan(40);
      await keepScreenshot(page, `overview-${theme}-${width}`);
      expect(await seriousFindings(page)).toEqual([]);
    },
  );

  it('leaves the tabs and the buttons beside them in place, whatever stands before them', async () => {
    const frame = await stateOf(ops);
    const cluster = 'a-cluster-with-a-long-name';
    const reached = 'here, not known of others';
    const forged = { ...frame, reached, state: { ...frame.state, cluster } };
    const watched = await openPage(url, {}, (prepared) => tells(prepared, forged));
    pages.push(watched);
    const { page } = watched;
    await page.locator('.where a').waitFor();
    const boxOf = (name: string) => `document.querySelector('${name}').getBoundingClientRect()`;
    for (const width of [1440, 1280, 1101]) {
      await page.setViewportSize({ width, height: 900 });
      expect(await inPage(page, `${boxOf('.top')}.height`)).toBeLessThan(60);
      expect(await inPage(page, `${boxOf('.right')}.right`)).toBeLessThan(width);
      expect(await inPage(page, `${boxOf('.where')}.right - ${boxOf('.tabs')}.left`)).toBeLessThan(
        0,
      );
      expect(await inPage(page, `${boxOf('.where a')}.height`)).toBeGreaterThanOrEqual(24);
    }
  });

  it('follows the system to dark while it is open, until somebody has chosen', async () => {
    const page = await visit('', { colorScheme: 'light' });
    const theme = () => inPage(page, 'document.documentElement.dataset.theme');
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.getByRole('button', { name: 'Switch to light' }).waitFor();
    expect(await theme()).toBe('dark');
    await page.getByRole('button', { name: 'Switch to light' }).click();
    await page.getByRole('button', { name: 'Switch to dark' }).waitFor();
    await page.emulateMedia({ colorScheme: 'light' });
    await page.emulateMedia({ colorScheme: 'dark' });
    expect(await theme()).toBe('light');
    // The address says more than the choice of before, if it names a theme that there is.
    await page.goto(`${url}?theme=dark`);
    expect(await theme()).toBe('dark');
    await page.goto(`${url}?theme=darker`);
    expect(await theme()).toBe('light');
  });

  it.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
  ] as const)('shows each view, %s, at %i px, readable by everybody', async (theme, width) => {
    const page = await visit('', { colorScheme: theme, viewport: { width, height: 900 } });
    for (const name of VIEWS.slice(1)) {
      await goTo(page, name);
      await keepScreenshot(page, `${name.toLowerCase()}-${theme}-${width}`);
      expect([name, await seriousFindings(page)]).toEqual([name, []]);
    }
  });

  it('says who decides, why and how much, also where all goes wrong at once', async () => {
    const frame = await stateOf(ops);
    const [total] = frame.state.series.filter(({ name }) => name === 'total');
    const alert = alertsAt(frame.nowMs);
    const forged: PageFrame = {
      ...{ ...frame, scope: 'process', seenFrom: 'api-1', leftOut: 'without 2 of another version' },
      reached: 'here, not known of others',
      nodes: frame.nodes.slice(0, 1).map((one) => ({ ...one, node: 'api-1', storeIsUp: false })),
      unseen: {
        ...{ count: 3, seenMs: frame.nowMs, said: '3 other nodes cannot be seen.' },
        nodes: ['api-2', 'api-3'].map((node) => {
          return { ...frame.nodes[0]!, node, rate: 77, storeIsUp: true };
        }),
      },
      resources: frame.resources.map((one) => ({ ...one, cause: 'relapse' })),
      state: {
        ...frame.state,
        series: [{ ...total!, rate: 209, denied: 11, degraded: [12, 0, 0, 0] }],
        store: { isUp: false, awayNodes: 1, sinceMs: undefined },
        resources: frame.state.resources.map((one) => ({ ...one, phase: 'degraded' })),
        alerts: [
          { ...alert('storeAway'), severity: 'critical' },
          ...['errorRate', 'relapse', 'peak', 'nodeSilent'].map(alert),
          { ...alert('errorRate'), series: 'app:search', sinceMs: frame.nowMs + 1 },
          { ...alert('overload'), value: 0 },
          { ...alert('slowCalls'), series: `resource:${frame.state.resources[0]!.resource}` },
          { ...alert('qpsRise'), state: 'resolved', endedMs: frame.nowMs },
        ],
      },
    };
    const watched = await openPage(url, {}, (prepared) => tells(prepared, forged));
    pages.push(watched);
    for (const text of [
      ...['allowed 186/s', 'degraded 12/s', 'denied 11/s', 'now of this node alone'],
      ...['api-1 decides by itself', 'without Redis each decides by itself'],
      'Look at Redis; until it answers limits hold by shares',
      ...[
        'degraded: the last try failed',
        /And 5 more, 3 firing, 1 ending, 1 over: .*Cluster is overloaded, Traffic rises\./,
        // One row for what is the same.
        'It is so.; also all',
      ],
      ...['without 2 of another version', '7 firing, 1 ending, 1 over', 'alert: Calls are slow'],
      ...['api-2, api-3: not seen since', 'here, not known of others', 'by itself'],
    ]) {
      await watched.page.locator('.card').filter({ hasText: text }).first().waitFor();
    }
    // A severity has the colour of the verdict that is as bad.
    const dots = `[...document.querySelectorAll('.alert-list .dot')].map((one) => {
      const valueOf = (name) => getComputedStyle(one).getPropertyValue(name);
      const colour = ['--allow', '--degraded', '--deny'].find((name) => valueOf(name) === valueOf('--tone'));
      return one.ariaLabel + ' ' + colour;
    })`;
    expect(await inPage(watched.page, dots)).toEqual([
      ...['critical, firing --deny', 'warning, firing --degraded', 'warning, firing --degraded'],
    ]);
    await watched.page
      .locator('header')
      .getByText(/^revision \d+ here, not known of others$/)
      .click();
    await watched.page.getByRole('heading', { name: 'History' }).waitFor();
    await goTo(watched.page, 'Overview');
    const picture = watched.page.locator('.flow-picture');
    await picture.getByText('+ 1 node').waitFor();
    expect(await picture.getByText(/^not seen since \d\d:\d\d$/).count()).toBe(2);
    await watched.page.locator('.verdict').getByText('3 other nodes cannot be seen').waitFor();
    // Those that are not seen stay in their table, as they were.
    await goTo(watched.page, 'Fleet');
    const unseen = watched.page.locator('tr.dim');
    expect(await unseen.count()).toBe(2);
    expect(await unseen.last().textContent()).toMatch(
      /^api-377.*not seen since \d\d:\d\d; without Redis it decides by itself, with its share$/,
    );
    await watched.page.getByText('3 other nodes cannot be seen.').waitFor();
    await keepScreenshot(watched.page, 'fleet-away');
    expect(await seriousFindings(watched.page)).toEqual([]);
  });

  it('says since when right behind what has been so, and what else is known behind that', async () => {
    const frame = await stateOf(ops);
    const sinceMs = frame.nowMs - 12 * 60_000;
    const verdict = { ...frame.verdict, text: 'Most are turned away.', why: undefined, sinceMs };
    const forged = { ...frame, verdict, aside: 'Redis answers.', news: '', unseen: null };
    const why = 'all ask for more';
    for (const one of [forged, { ...forged, verdict: { ...verdict, why } }]) {
      const watched = await openPage(url, {}, (prepared) => tells(prepared, one));
      pages.push(watched);
      const said = await watched.page.locator('.say span').textContent();
      const since = 'Since [^,]+, 12\\Wmin\\.';
      const parts = one.verdict.why === undefined ? [since, 'Redis answers\\.'] : ['All ask for more\\.', since]; // oxfmt-ignore
      expect(said!.trim()).toMatch(new RegExp(`^${parts.join(' ')}$`));
    }
  });

  it('says whom alerts of one rule are of, and mutes those that fire', async () => {
    const frame = await stateOf(ops);
    const alert = alertsAt(frame.nowMs);
    const over = { state: 'resolved', endedMs: frame.nowMs, text: 'total: qpsRise is over' } as const; // oxfmt-ignore
    const alerts = [
      ...[alert('denialRise'), { ...alert('denialRise'), series: 'app:search' }],
      ...[alert('qpsRise'), { ...alert('qpsRise'), series: 'app:search' }].map((one) => {
        return { ...one, ...over };
      }),
    ];
    const forged = { ...frame, state: { ...frame.state, alerts } };
    const sent: unknown[] = [];
    const watched = await openPage(url, {}, async (prepared) => {
      await tells(prepared, forged);
      await prepared.route('**/api/mute', (route) => {
        sent.push(route.request().postDataJSON());
        return route.fulfill({ json: { done: true } });
      });
    });
    pages.push(watched);
    const rows = watched.page.locator('.alert-list li');
    expect(await rows.last().locator('p').textContent()).toBe('all requests; also search');
    await rows.first().getByRole('button', { name: 'Mute for an hour' }).click();
    await rows.first().getByText('It is so.; also search; muted for an hour').waitFor();
    expect(sent).toEqual([
      { rule: 'denialRise', series: 'total', minutes: 60 },
      { rule: 'denialRise', series: 'app:search', minutes: 60 },
    ]);
  });

  it('names the node whose breaker is open, and keeps the mark of when it opened', async () => {
    const frame = await stateOf(ops);
    const [one] = frame.state.resources;
    const { resource } = one!;
    const nodes = frame.nodes.map((node, index) => {
      return index === 1 ? { ...node, node: 'api-2', open: [resource] } : node;
    });
    const forged: PageFrame = {
      ...{ ...frame, nodes },
      state: {
        ...frame.state,
        resources: [{ ...one!, breaker: 'open', openNodes: 1, phase: undefined }],
        // After the last slot that is known of hours.
        marks: [{ atMs: frame.nowMs - 2000, kind: 'breaker', text: 'breaker opens on api-2' }],
      },
    };
    const watched = await openPage(url, {}, (prepared) => tells(prepared, forged));
    pages.push(watched);
    const { page } = watched;
    await page.locator('.resource-list').getByText('breaker open on api-2').waitFor();
    await page.locator('.node-list .odd').getByText('breaker open').waitFor();
    for (const span of ['2 min', '3 h', '7 d']) {
      await page.getByRole('button', { name: span }).click();
      await page.locator('.t-mark', { hasText: 'breaker opens on api-2' }).waitFor();
    }
    // Where events are too close to each other for their words, the table has all of them.
    await page.getByText('Show as table').click();
    await page
      .locator('.as-table')
      .getByText(/^\d\d:\d\d breaker opens on api-2$/)
      .waitFor();
    await goTo(page, 'Fleet');
    await page.getByRole('cell', { name: `breaker open: ${resource}` }).waitFor();
  });

  describe('of a thousand nodes', () => {
    async function crowded(hash = ''): Promise<Page> {
      const frame = crowdedFrame(await stateOf(ops));
      const watched = await openPage(`${url}${hash}`, {}, (prepared) => tells(prepared, frame));
      pages.push(watched);
      await watched.page.getByRole('button', { name: 'Live' }).waitFor();
      return watched.page;
    }

    it('counts all of them, and shows those first with which something is wrong', async () => {
      const page = await crowded();
      const card = page.locator('.card.fleet');
      await card.getByText('1,000 nodes, 997 on revision 42', { exact: true }).waitFor();
      await card.getByText('node-849 and 2 more have not applied revision 42 yet.').waitFor();
      const tiles = await card.locator('.node-list li').allTextContents();
      expect(tiles).toHaveLength(13);
      expect(tiles.slice(0, 3)).toEqual([
        ...['node-829130/s, breaker open', 'node-839140/s, by itself', 'node-849150/s, rev 41'],
      ]);
      expect(tiles.at(-1)).toBe('and 988 more');
      await keepScreenshot(page, 'crowded');
    });

    it('draws the largest apps and nodes, those with which something is wrong, and the others as one', async () => {
      const page = await crowded();
      const picture = page.locator('.flow-picture');
      await picture.waitFor();
      const names = await picture.locator('text').allTextContents();
      const of = (name: RegExp): string[] => names.filter((one) => name.test(one));
      expect(of(/^app-|more$/)).toEqual([
        ...['app-16', 'app-12', 'app-17', 'app-13', 'app-9', 'app-18', 'app-14', 'app-10'],
        ...['app-19', 'app-15', 'app-11', '+ 9 more'],
      ]);
      expect(of(/^node-(?!9)/)).toEqual(['node-829', 'node-839', 'node-849']);
      expect(of(/^node-9/)).toHaveLength(20);
      expect(of(/^node-9/)[0]).toBe('node-980');
      expect(of(/nodes/)).toEqual(['+ 977 nodes']);
      // 2,100 of all, less 4.2 of each of the 20, and 2.1 of each of the three.
      expect(of(/^2,010\/s$/)).toHaveLength(1);
      // From the reservoir to each app, and from each app to the nodes that are drawn as one.
      expect(await picture.locator('.band.sure').count()).toBe(24);
    });

    it('sorts a table by each column, the largest first, and those with which something is wrong', async () => {
      const page = await crowded('#fleet');
      const table = page.getByRole('table');
      const first = () => table.locator('tbody td').first().textContent();
      const head = (name: string) => table.getByRole('columnheader', { name });
      await head('Node').waitFor();
      expect([await first(), await head('Node').getAttribute('aria-sort')]).toEqual([
        ...['node-800', 'ascending'],
      ]);
      await head('Requests/s').getByRole('button').click();
      await table.locator('[aria-sort="descending"]').waitFor();
      expect(await first()).toBe('node-999');
      await head('Requests/s').getByRole('button').click();
      await table.locator('[aria-sort="ascending"]').waitFor();
      expect(await first()).toBe('node-800');
      await head('State').getByRole('button').click();
      await head('State').and(table.locator('[aria-sort="ascending"]')).waitFor();
      expect(await first()).toMatch(/^node-8[234]9$/);
    });

    it('says how many policies and nodes its tables are without', async () => {
      const page = await crowded('#policies');
      const filter = page.getByLabel('Filter', { exact: true });
      await page.getByText('200 of 200, and 4,800 more that decide less').waitFor();
      await filter.fill('policy-4321');
      await page.getByText('None of these 200 has that name.').waitFor();
      await page.getByText('The 4,800 that decide less are not shown here.').waitFor();
      await goTo(page, 'Fleet');
      await page.getByText('1,000 nodes; figures of all').waitFor();
      await page.getByText('200 of 200, and 800 more that decide less').waitFor();
    });
  });

  it('says why there is a level of answers beside a resource that is normal', async () => {
    const frame = await stateOf(ops);
    const [total] = frame.state.series.filter(({ name }) => name === 'total');
    const [one] = frame.state.resources;
    const series = {
      ...total!,
      name: `resource:${one!.resource}`,
      degraded: [2, 0, 0, 0],
    } as const;
    const resources = [{ ...one!, phase: 'normal' as const }];
    const forged = { ...frame, state: { ...frame.state, series: [series], resources } };
    const watched = await openPage(url, {}, (prepared) => tells(prepared, forged));
    pages.push(watched);
    const row = watched.page.locator('.resource-list li');
    await row.getByText(/^normal, lately some answers of level 1/).waitFor();
    expect(await row.locator('.level').textContent()).toBe('1');
  });

  it('holds and releases a resource for the whole fleet', async () => {
    const resource = 'ShopController.page';
    const page = await visit(`#resources?of=resource:${resource}`);
    const sheet = page.getByRole('dialog', { name: `Details of ${resource}` });
    const configs = nodes.map(({ app }) => app.get(RateLimitConfig));
    const held = () =>
      configs.map((config) => config.current().document.degradation?.resources?.[resource]);
    await sheet.getByLabel('Level').selectOption('3 simplified');
    await sheet.getByRole('button', { name: 'Hold at this level' }).click();
    await sheet.getByText(/^Written as revision \d+; all nodes take it over\.$/).waitFor();
    await sheet.getByText('held by an operator').waitFor();
    const forced = { mode: 'forced', level: 3 };
    await until(() => held().every((one) => one?.mode === 'forced'));
    expect(held()).toEqual([forced, forced, forced]);
    await sheet.getByRole('button', { name: 'Release' }).click();
    await sheet.getByText('held by an operator').waitFor({ state: 'detached' });
    await until(() => held().every((one) => one?.mode === undefined));
  });

  it('offers to hold what only other nodes degrade', async () => {
    const frame = await stateOf(ops);
    const [one] = frame.state.resources;
    const elsewhere = { ...one!, resource: 'elsewhere', phase: 'degraded' as const };
    const protectedOnly = { ...one!, resource: 'protected', phase: undefined };
    const resources = [elsewhere, protectedOnly];
    const forged = { ...frame, state: { ...frame.state, resources } };
    let sent: unknown;
    const watched = await openPage(
      `${url}#resources?of=resource:elsewhere`,
      {},
      async (prepared) => {
        await tells(prepared, forged);
        await prepared.route('**/api/resources/elsewhere', (route) => {
          sent = route.request().postDataJSON();
          return route.fulfill({ json: { revision: 7 } });
        });
        await prepared.route('**/api/series?*', (route) => route.fulfill({ json: null }));
      },
    );
    pages.push(watched);
    const { page } = watched;
    await page.getByRole('button', { name: 'Never degrade' }).click();
    await page.getByText('Written as revision 7; all nodes take it over.').waitFor();
    expect(sent).toEqual({ mode: 'disabled', level: null });
    await page.getByRole('button', { name: 'protected', exact: true }).click();
    await page.getByText('No route degrades under this name').waitFor();
  });

  it('has what is known of a span in its table, the newest as well', async () => {
    const rate = Array.from({ length: 180 }, (_, minute) => (minute < 157 ? null : minute));
    const none = rate.map((one) => one && 0);
    const { nowMs } = await stateOf(ops);
    const history = { stepMs: 60_000, startMs: nowMs - 180 * 60_000, denied: none, degraded: none };
    const watched = await openPage(`${url}#overview?h=minutes`, {}, async (prepared) => {
      const json = { ...history, rate };
      await prepared.route('**/api/series?*', (route) => route.fulfill({ json }));
    });
    pages.push(watched);
    await watched.page.getByText('Show as table').click();
    const allowed = watched.page.locator('.as-table tbody td:nth-child(2)');
    await allowed.first().waitFor();
    const rates = await allowed.allTextContents();
    expect(rates).not.toContain('no data');
    expect([rates.length, rates[0], rates.at(-1)]).toEqual([12, '157', '179']);
  });

  it('says of what no hours are kept, and asks for them once', async () => {
    const asked: string[] = [];
    const frame = await stateOf(ops);
    const watched = await openPage(
      `${url}#policies?h=hours&of=policy:search`,
      {},
      async (prepared) => {
        await tells(prepared, { ...frame, state: { ...frame.state, series: [seriesNamed(frame, 'policy:search')] } }); // oxfmt-ignore
        await prepared.route('**/api/series?*', (route) => {
          asked.push(new URL(route.request().url()).search);
          return route.fulfill({ json: null });
        });
      },
    );
    pages.push(watched);
    const { page } = watched;
    await page.getByText('Nothing is kept of it for so long.').waitFor();
    await page.getByRole('button', { name: '3 h', exact: true }).click();
    await page.getByText('No figures for this span yet.').waitFor();
    await page.getByRole('button', { name: '7 d', exact: true }).click();
    await page.getByText('Nothing is kept of it for so long.').waitFor();
    const hours = asked.filter((one) => one.includes('horizon=hours'));
    expect(hours).toEqual(['?name=policy%3Asearch&horizon=hours']);
  });

  it('draws the times of Redis for as long as is looked at', async () => {
    const frame = await stateOf(ops);
    const history = (horizon: string | null) => {
      const [stepMs, value] = horizon === 'seconds' ? [1000, 2] : [60_000, 8];
      const length = stepMs === 1000 ? 120 : 180;
      const startMs = frame.nowMs - length * stepMs;
      const [rate, p99Ms] = [0, value].map((one) => Array<number>(length).fill(one));
      return { stepMs, startMs, rate, denied: rate, degraded: rate, p99Ms };
    };
    const watched = await openPage(url, {}, async (prepared) => {
      await tells(prepared, frame);
      await prepared.route('**/api/series?*', (route) => {
        const { searchParams } = new URL(route.request().url());
        return route.fulfill({ json: history(searchParams.get('horizon')) });
      });
    });
    pages.push(watched);
    const { page } = watched;
    const points = async () =>
      ((await page.locator('.spark .line').getAttribute('d')) ?? '').split('L').length;
    await page.getByLabel('Time of calls to Redis in the last 2 min').waitFor();
    await until(async () => (await points()) > 100);
    await page.getByRole('button', { name: '7 d', exact: true }).click();
    await page.getByLabel('Time of calls to Redis in the last 3 h').waitFor();
    await until(async () => (await points()) === 180);
  });

  it.each([1440, 390])('shows hostile names of all kinds as text, at %i px', async (width) => {
    const hostile = hostileFrame(await stateOf(ops));
    const forged = HOSTILE_NAMES.map((name, index) => ({
      ...{ revision: index, kind: name, by: name, atMs: 0, node: name, status: 'refused' },
      ...{ reason: name, diff: { added: [{ path: name, after: name }], removed: [], changed: [] } },
    }));
    const viewport = { width, height: 900 };
    const watched = await openPage(url, { viewport }, async (prepared) => {
      await tells(prepared, hostile);
      for (const path of ['history', 'nodes']) {
        await prepared.route(`**/api/${path}`, (route) => route.fulfill({ json: forged }));
      }
    });
    pages.push(watched);
    const { page } = watched;
    for (const view of VIEWS) {
      await goTo(page, view);
      if (view === 'Policies' || view === 'Resources') {
        await page.locator('table.rows button.plain').first().click();
        await page.getByRole('dialog').first().waitFor();
      }
      await keepScreenshot(page, `hostile-${view}-${width}`);
      expect([view, await widthOf(page)]).toEqual([view, width]);
      const text = String(await inPage(page, 'document.body.innerText + document.title'));
      expect(text.match(/[\p{Cf}\u2028\u2029]|(?![\n\t])\p{Cc}/u)).toBeNull();
      if (view !== 'Capacity') expect(text).toMatch(/<img src=x/);
      expect(await page.locator('main img, main script').count()).toBe(0);
      await page.keyboard.press('Escape');
    }
    expect(await page.title()).toMatch(/· weir$/);
    // Of names that were forged nothing is kept; the browser tells of that as well.
    const others = watched.complaints.splice(0).filter((one) => !/ 404 /.test(one));
    expect(others).toEqual([]);
  });

  it('is not shown within the page of another site', async () => {
    const around = 'http://127.0.0.2/';
    const watched = await openPage(around, {}, async (prepared) => {
      await prepared.route(around, (route) =>
        route.fulfill({ contentType: 'text/html', body: `<iframe src="${url}"></iframe>` }),
      );
    });
    pages.push(watched);
    const { page, complaints } = watched;
    const inside = page.frames().find((frame) => frame !== page.mainFrame())!;
    // The browser shows a page of its own in its place.
    expect(inside.url()).toMatch(/^chrome-error:/);
    expect(complaints.splice(0)).toContain(`asked for ${url}`);
  });

  it('says which policy turns a key away', async () => {
    const page = await visit();
    await page.getByLabel('Why is this one limited?').fill('ann');
    await page.getByRole('button', { name: 'Look', exact: true }).click();
    await page.getByText('has no token left of 3').waitFor();
    await page
      .locator('.looked')
      .getByText(/^ann, asked at \d\d:\d\d:\d\d/)
      .waitFor();
    // An answer is of what was asked for, and stands beside nothing else.
    await page.getByLabel('Why is this one limited?').fill('');
    await page.locator('.looked:empty').waitFor({ state: 'attached' });
    await page.getByLabel('Why is this one limited?').fill('nobody');
    await page.getByRole('button', { name: 'Look', exact: true }).click();
    await page.locator('.looked').getByText('has no token left of 1').waitFor();
    // The list is of those who were denied in the last minute.
    for (let n = 0; n < 8; n++) await (await ops.get('/search', { 'x-client': 'ann' })).text();
    await page.getByRole('button', { name: 'ann', exact: true }).click();
    await page
      .locator('.looked')
      .getByText(/^search denied it \d+ times in the last minute/)
      .waitFor();
    expect(await page.getByLabel('Why is this one limited?').inputValue()).toBe('ann');
  });

  it('says what each button of the application does, before it is pressed as well', async () => {
    const page = await visit('', { viewport: { width: 390, height: 844 } });
    const bar = page.getByRole('region', { name: 'Try it' });
    const heightOf = (name: string) =>
      inPage(page, `document.querySelector('${name}').getBoundingClientRect().height`);
    // One line, which scrolls.
    expect(await heightOf('.action-bar')).toBeLessThan(60);
    await bar.getByRole('button', { name: 'Ring' }).focus();
    await bar.getByText('A bell.').waitFor();
    await page.keyboard.press('Enter');
    await bar.getByText('A bell. It rang.').waitFor();
    await bar.getByRole('button', { name: 'What they do' }).click();
    await bar.locator('dl').getByText('A bell.').waitFor();
    const link = bar.getByRole('link', { name: 'door.ts' });
    expect(await link.getAttribute('href')).toBe('https://example.com/code/door.ts');
    await keepScreenshot(page, 'actions');
    expect(await seriousFindings(page)).toEqual([]);
    await bar.getByRole('button', { name: 'What they do' }).click();
    await bar.locator('dl').waitFor({ state: 'detached' });
  });

  it('refuses a wrong change with its path, applies a right one node by node, and rolls it back', async () => {
    const page = await visit('#config');
    const before = await documentIn(page);
    const rate = /"rate": 3\b/;
    expect(before).toMatch(rate);
    await editor(page).fill(before.replace(rate, '"rate": -3'));
    await page.getByText('policies.search.rate: expected').waitFor();
    expect(await applyButton(page).isDisabled()).toBe(true);
    await editor(page).fill(before.replace(rate, '"rate": 30'));
    await page.locator('.impact .diff').getByText('policies.search.rate').waitFor();
    await page.getByText('No restart is needed').waitFor();
    await keepScreenshot(page, 'config-change');
    await applyButton(page).click();
    await page.getByText(/is in force on all 3 nodes/).waitFor();
    for (const node of ['api-1', 'api-2', 'api-3']) {
      await page.locator('.acks li.good').filter({ hasText: node }).waitFor();
    }
    await keepScreenshot(page, 'config-acks');
    const configs = nodes.map(({ app }) => app.get(RateLimitConfig));
    for (const config of configs) {
      expect(config.current().document.policies!.search!.rate).toBe(30);
    }
    const { revision } = configs[0]!.current();
    await goTo(page, 'Overview');
    await page.locator('.change').getByRole('button', { name: 'Undo' }).click();
    // The difference that going back would make, not the one that the revision had made.
    const wayBack = page.locator('.looked-at .diff').first();
    await wayBack.getByText('policies.search.rate').waitFor();
    expect(await wayBack.locator('del').allTextContents()).toEqual(['30']);
    expect(await wayBack.locator('ins').allTextContents()).toEqual(['3']);
    await page.locator('.impact').getByText('search is altered').waitFor();
    await page.getByRole('button', { name: `Roll back to revision ${revision - 1}` }).click();
    await page.getByText(`Revision ${revision + 1} is in force on all 3 nodes`).waitFor();
    expect(configs[0]!.current().document.policies!.search!.rate).toBe(3);
  });

  it('sends the difference to what holds, and as it is what is no JSON', async () => {
    const page = await visit('#config');
    const before = await documentIn(page);
    const sent = async (text: string): Promise<unknown> => {
      const [request] = await Promise.all([
        page.waitForRequest('**/api/validate'),
        editor(page).fill(text),
      ]);
      return request.postDataJSON();
    };
    const schema = before.replace('{', '{ "$schema": "weir.json",');
    expect(await sent(schema)).toEqual({ patch: {} });
    await page.getByText('no change').waitFor();
    expect(await sent(before.replace(/"rate": 3\b/, '"rate": 32'))).toEqual({
      patch: { policies: { search: { rate: 32 } } },
    });
    await page.getByText('No restart is needed').waitFor();
    const without = before.replace(/"page": \{[^}]*\}/, '"page": null');
    expect(await sent(without)).toEqual({ patch: { policies: { page: null } } });
    expect(await sent('policies: {}')).toEqual({ text: 'policies: {}' });
    expect(await sent('{ "policies": }')).toEqual({ text: '{ "policies": }' });
    await page.getByText(/^line 1: not JSON: expected a value, got '\}'$/).waitFor();
    expect(await page.locator('.lines b').textContent()).toBe('1');
  });

  it('has room for thousands of policies, of which it sends what differs', async () => {
    const names = Array.from({ length: 5000 }, (_, index) => `policy-${index}`);
    const limit = { rate: 5, period: '1h', key: 'ip' };
    const policies = Object.fromEntries(names.map((name) => [name, limit]));
    const watched = await openPage(`${url}#config`, {}, async (prepared) => {
      const json = { revision: 7, profile: 'normal', document: { policies } };
      await prepared.route('**/api/config', (route) => route.fulfill({ json }));
      const answer = { revision: 7, issues: [], diff: { added: [], removed: [], changed: [] } };
      await prepared.route('**/api/validate', (route) => route.fulfill({ json: answer }));
    });
    pages.push(watched);
    const { page } = watched;
    const before = await documentIn(page);
    expect(before.split('\n').length).toBeGreaterThan(25_000);
    const select = async (text: string): Promise<void> => {
      const [at, { length }] = [before.lastIndexOf(text), text];
      await editor(page).focus();
      await inPage(page, `document.activeElement.setSelectionRange(${at}, ${at + length})`);
    };
    await select('5,');
    const [asked] = await Promise.all([
      page.waitForRequest('**/api/validate'),
      page.keyboard.type('6,'),
    ]);
    const patch = { policies: { 'policy-4999': { rate: 6 } } };
    expect(asked.postDataJSON()).toEqual({ patch });
    await page.getByText('no change').waitFor();
    // An element for each of its lines would be made anew at each key.
    expect(await page.locator('.lines *').count()).toBe(0);
    // What is no JSON yet is too long to be sent.
    await select('"policy-2": {');
    await page.keyboard.press('Delete');
    const fault = page.locator('.issues .bad').filter({ hasText: /^line 2500\d: .*JSON/ });
    await fault.waitFor();
    expect(await page.locator('.lines b').textContent()).toMatch(/^2500/);
    await keepScreenshot(page, 'config-large');
  });

  it('asks who has a change until all have it, for a minute at most, and never while nobody looks', async () => {
    let asked = 0;
    let late = 6;
    const watched = await openPage(`${url}#config`, {}, async (prepared) => {
      await prepared.clock.install();
      await prepared.route('**/api/config', (route) =>
        route.request().method() === 'PUT'
          ? route.fulfill({ json: { revision: 7 } })
          : route.continue(),
      );
      await prepared.route('**/api/nodes', (route) => {
        asked++;
        const acks = [['api-1', late], ['api-2', 7]] as const; // oxfmt-ignore
        const json = acks.map(([node, revision]) => ({ node, revision, status: 'applied' }));
        return route.fulfill({ json });
      });
    });
    pages.push(watched);
    const { page } = watched;
    const before = await documentIn(page);
    await editor(page).fill(before.replace(/"rate": 3\b/, '"rate": 31'));
    await page.getByText('No restart is needed').waitFor();
    await applyButton(page).click();
    await page.getByText('Revision 7: 1 of 2 nodes have it.').waitFor();
    const hide = (isHidden: boolean) =>
      inPage(page, `Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true })`); // oxfmt-ignore
    const isOver = page.getByText('The others have not said within a minute that they have it');
    await hide(true);
    await page.clock.runFor(90_000);
    expect(await isOver.count()).toBe(0);
    await hide(false);
    await page.clock.runFor(61_000);
    await isOver.waitFor();
    await until(() => asked === 60);
    await page.clock.runFor(5000);
    expect(asked).toBe(60);
    late = 7;
    await page.getByRole('button', { name: 'Ask again' }).click();
    await page.getByText('Revision 7 is in force on all 2 nodes.').waitFor();
    const askedInAll = asked;
    await page.clock.runFor(5000);
    // One may have been on its way.
    expect(asked - askedInAll).toBeLessThan(3);
    await page.getByRole('button', { name: 'Good' }).click();
    await page.locator('.acks').waitFor({ state: 'detached' });
  });

  it('shows that all nodes have a change within two seconds', async () => {
    const page = await visit('#config');
    const tookMs: number[] = [];
    for (let n = 0; n < 3; n++) {
      const before = await documentIn(page);
      await editor(page).fill(before.replace(/"capacity": \d+/, `"capacity": ${2000 + n}`));
      await page.getByText('No restart is needed').waitFor();
      const { revision } = ops.app.get(RateLimitConfig).current();
      const startedMs = performance.now();
      await applyButton(page).click();
      await page.getByText(`Revision ${revision + 1} is in force on all 3 nodes`).waitFor();
      tookMs.push(performance.now() - startedMs);
      if (tookMs.at(-1)! <= 2000) break;
    }
    expect(Math.min(...tookMs)).toBeLessThanOrEqual(2000);
  });

  it('shows who was faster, and keeps the text', async () => {
    const page = await visit('#config');
    const before = await documentIn(page);
    const mine = before.replace(/"rate": 3\b/, '"rate": 33');
    await editor(page).fill(mine);
    await page.getByText('No restart is needed').waitFor();
    const config = ops.app.get(RateLimitConfig);
    await config.update({ policies: { page: { rate: 2 } } }, { by: 'somebody' });
    await applyButton(page).click();
    await page.getByText(/Somebody was faster: revision \d+ by somebody/).waitFor();
    expect(await editor(page).inputValue()).toBe(mine);
    await keepScreenshot(page, 'config-conflict');
    expect(config.current().document.policies!.search!.rate).toBe(3);
    // The browser tells of each answer that is no success.
    expect(pages[0]!.complaints.splice(0)).toEqual([expect.stringMatching(/409/)]);
    const { revision } = config.current();
    await page.getByRole('button', { name: `Keep my text, over revision ${revision}` }).click();
    await applyButton(page).click();
    await page.getByText(`Revision ${revision + 1} is in force on all 3 nodes`).waitFor();
    const { search, page: other } = config.current().document.policies!;
    expect([search!.rate, other!.rate]).toEqual([33, 1]);
    await config.update({ policies: { search: { rate: 3 } } });
  });

  it('applies and rolls back by keyboard alone', async () => {
    const page = await visit('#config');
    const before = await documentIn(page);
    const config = ops.app.get(RateLimitConfig);
    const tabTo = async (name: RegExp, key = 'Tab'): Promise<void> => {
      const inFocus = async () =>
        String(await inPage(page, 'document.activeElement.ariaLabel ?? document.activeElement.textContent')); // oxfmt-ignore
      for (let n = 0; n < 60 && !name.test(await inFocus()); n++) await page.keyboard.press(key);
      expect(await inFocus()).toMatch(name);
    };
    await tabTo(/^The configuration, as/);
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.insertText(before.replace(/"rate": 3\b/, '"rate": 34'));
    await page.getByText('No restart is needed').waitFor();
    const { revision } = config.current();
    await tabTo(/^Apply to \d+ nodes?$/, 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByText(`Revision ${revision + 1} is in force on all 3 nodes`).waitFor();
    expect(config.current().document.policies!.search!.rate).toBe(34);
    await page
      .locator('.history')
      .getByText(String(revision + 1), { exact: true })
      .waitFor();
    await tabTo(new RegExp(`^${revision}$`));
    await page.keyboard.press('Enter');
    await page.locator('.impact').getByText('search is altered').waitFor();
    await tabTo(/^Roll back to revision/);
    await page.keyboard.press('Enter');
    await page.getByText(`Revision ${revision + 2} is in force on all 3 nodes`).waitFor();
    expect(config.current().document.policies!.search!.rate).toBe(3);
  });

  it('gives the busiest minute of each hour as a file', async () => {
    const page = await visit('#capacity');
    await page.getByText('The busiest minute was in the hour').waitFor();
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download as CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('weir-capacity.csv');
    const lines = readFileSync(await download.path(), 'utf8')
      .trimEnd()
      .split('\n');
    expect(lines[0]).toBe('hour,peak_per_second');
    expect(lines).toHaveLength(1 + 168);
    for (const line of lines.slice(1)) {
      expect(line).toMatch(/^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z,[\d.]*$/);
    }
    expect(lines.filter((line) => /,\d/.test(line)).length).toBeGreaterThan(0);
  });

  it('keeps what it shows while it is paused, and shows what is so now when it goes on', async () => {
    const frame = await stateOf(ops);
    const watched = await openPage(url, {}, async (prepared) => {
      // Frames come when the test sends them.
      await prepared.addInitScript(`window.EventSource = class {
        addEventListener(name, take) {
          window['take ' + name] = (frame) => take({ data: JSON.stringify(frame) });
        }
        close() {}
      }`);
    });
    pages.push(watched);
    const { page } = watched;
    const send = (rate: number) => {
      const series = [{ ...seriesNamed(frame, 'total'), rate }];
      const shown = { ...frame, state: { ...frame.state, series } };
      return inPage(page, `window['take state'](${JSON.stringify(shown)})`);
    };
    const decisions = page.locator('.facts dd').first();
    await send(11);
    await decisions.getByText('11').waitFor();
    await page.keyboard.press('Space');
    await page.getByRole('button', { name: 'Paused' }).waitFor();
    await send(22);
    await page.getByRole('button', { name: 'Paused' }).press('Enter');
    await page.getByRole('button', { name: 'Live' }).waitFor();
    expect(await decisions.textContent()).toMatch(/^11/);
    await send(33);
    await decisions.getByText('33').waitFor();
  });

  it('says that one is signed out, and where to sign in', async () => {
    let isSignedOut = false;
    const body = `event: state\ndata: ${JSON.stringify(await stateOf(ops))}\n\n`;
    const watched = await openPage(url, {}, async (prepared) => {
      await prepared.route('**/api/stream', (route) =>
        isSignedOut
          ? route.fulfill({ status: 401 })
          : route.fulfill({ contentType: 'text/event-stream', body }),
      );
      await prepared.route('**/api/state', (route) =>
        isSignedOut ? route.fulfill({ status: 401, json: {} }) : route.continue(),
      );
    });
    pages.push(watched);
    const { page, complaints } = watched;
    await heading(page, 'Alerts').waitFor();
    isSignedOut = true;
    await page.getByRole('button', { name: 'Signed out' }).waitFor();
    await page.getByText('The server does not let you look any more.').waitFor();
    await page.getByRole('link', { name: 'Sign in again' }).waitFor();
    await heading(page, 'Alerts').waitFor();
    expect(complaints.splice(0).filter((one) => !/401/.test(one))).toEqual([]);
  });

  it('says that earlier revisions cannot be seen while Redis is away, and shows them when it is back', async () => {
    const frame = await stateOf(ops);
    const away = { isUp: false, awayNodes: 3, sinceMs: frame.nowMs };
    // Long enough ago for another try to be due.
    const forged = { ...frame, nowMs: frame.nowMs - 60_000, state: { ...frame.state, store: away } }; // oxfmt-ignore
    let isAway = true;
    const watched = await openPage(`${url}#config`, {}, async (prepared) => {
      const body = `event: state\ndata: ${JSON.stringify(forged)}\n\n`;
      await prepared.route('**/api/stream', (route) =>
        isAway ? route.fulfill({ contentType: 'text/event-stream', body }) : route.continue(),
      );
      const status = { status: 503, json: { message: 'Redis does not answer; nothing was changed.' } }; // oxfmt-ignore
      await prepared.route('**/api/history', (route) =>
        isAway ? route.fulfill(status) : route.continue(),
      );
    });
    pages.push(watched);
    const { page, complaints } = watched;
    await page.getByText('Redis is away: earlier revisions can be seen').waitFor();
    expect(await documentIn(page)).toMatch(/"policies"/);
    expect(await page.getByText(/nothing was changed|No revision has been written/).count()).toBe(
      0,
    );
    isAway = false;
    await page.locator('.history li').first().waitFor();
    expect(await page.getByText('Redis is away').count()).toBe(0);
    // The browser tells of each answer that is no success.
    expect(complaints.splice(0).filter((one) => !/503/.test(one))).toEqual([]);
  });

  it('says that limits stand alone where there is no quota, and where to read of quotas', async () => {
    const frame = await stateOf(ops);
    const forged = { ...frame, state: { ...frame.state, quota: undefined } };
    const watched = await openPage(url, {}, (prepared) => tells(prepared, forged));
    pages.push(watched);
    const card = watched.page.locator('.card.flow');
    await card.getByText('Limits stand alone here').waitFor();
    const link = card.getByRole('link', { name: 'Quotas' });
    expect(await link.getAttribute('href')).toMatch(/\/docs\/quotas\.md$/);
    expect(await link.getAttribute('rel')).toBe('noreferrer');
  });

  it('can be used by keyboard alone', async () => {
    const page = await visit();
    await page.keyboard.press('Tab');
    expect(await inPage(page, 'document.activeElement?.textContent')).toBe('Skip to the content');
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await heading(page, 'Policies').waitFor();
    await page.keyboard.press('/');
    await until(() => inPage(page, "document.activeElement?.id === 'filter'"));
    await page.keyboard.type('sea');
    await page.getByText('1 of 2').waitFor();
    await page.getByRole('cell', { name: '3/h per key' }).waitFor();
    expect(page.url()).toMatch(/#policies\?q=sea$/);
    for (let n = 0; n < 12; n++) {
      await page.keyboard.press('Tab');
      if ((await inPage(page, 'document.activeElement?.textContent')) === 'search') break;
    }
    await page.keyboard.press('Enter');
    const sheet = page.getByRole('dialog', { name: 'Details of search' });
    await sheet.waitFor();
    await keepScreenshot(page, 'sheet');
    await page.keyboard.press('Escape');
    await sheet.waitFor({ state: 'detached' });
    await until(() => inPage(page, "document.activeElement?.textContent === 'search'"));
    await page.keyboard.press('?');
    const keys = page.getByRole('dialog', { name: 'Keys' });
    await keys.waitFor();
    await page.keyboard.press('Escape');
    await keys.waitFor({ state: 'hidden' });
    await page.keyboard.press('3');
    await until(() => inPage(page, "location.hash.includes('h=hours')"));
  });

  it('moves nothing for whoever does not want that', async () => {
    const moving = async (reducedMotion: 'reduce' | 'no-preference'): Promise<unknown> => {
      const page = await visit('', { reducedMotion });
      const drops = page.locator('.drops');
      // The flow is of the last seconds, and a busy machine may take longer than these to show it.
      while ((await drops.count()) === 0) await (await ops.get('/stock')).text();
      return inPage(page, 'document.getAnimations().length');
    };
    expect(await moving('reduce')).toBe(0);
    expect(await moving('no-preference')).toBeGreaterThan(0);
  });

  it('says when it was heard last while the stream is cut, and goes on by itself', async () => {
    const page = await visit();
    await page.route('**/api/stream', (route) => route.abort());
    const { viewers } = ops.app.get(Dashboard, { strict: false });
    for (const { response } of viewersOf(viewers)) response.destroy();
    await page.getByText(/The stream is lost: last heard/).waitFor();
    await page.locator('main.stale').waitFor();
    await page.unroute('**/api/stream');
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByRole('button', { name: 'Live' }).waitFor();
    await page.locator('main:not(.stale)').waitFor();
    // The browser tells of each stream that was cut or stopped.
    pages[0]!.complaints.length = 0;
  });

  it('asks to be loaded again after a deployment, and is the new one then', async () => {
    const page = await visit();
    const { frames } = ops.app.get(Dashboard, { strict: false });
    const { deps } = frames as unknown as { deps: { build: string } };
    const { build } = deps;
    deps.build = 'of the next deployment';
    try {
      await page.getByText('This page is of an earlier deployment.').waitFor();
      await Promise.all([
        page.waitForEvent('load'),
        page.getByRole('link', { name: 'Load the new one' }).click(),
      ]);
      await page.getByRole('button', { name: 'Live' }).waitFor();
      expect(await page.getByText('of an earlier deployment').count()).toBe(0);
    } finally {
      deps.build = build;
    }
  });

  it('has no buttons for changes where nothing may be changed, and says what is missing', async () => {
    const readOnly = await startOps('express');
    const page = await visit('', {}, `${readOnly.url}/ops/limits/`);
    await page.getByText('Nobody is turned away.').waitFor();
    await page.getByText('No policy has decided yet.').waitFor();
    await page.getByText('This process only: other processes have limits of their own.').waitFor();
    const flow = page.locator('.card.flow');
    await flow.getByText(/^Nothing is decided now\. .* curl http:/).waitFor();
    // Nobody who calls is told how to.
    await (await readOnly.get('/stock')).text();
    await flow.getByText('Nothing is decided now').waitFor({ state: 'detached' });
    await keepScreenshot(page, 'empty');
    await goTo(page, 'Config');
    await page.getByText('read only').waitFor();
    expect(await page.getByRole('button', { name: /Apply|Discard/ }).count()).toBe(0);
    await page.context().close();
    await readOnly.close();
  });
});

/** As a network that breaks would cut them. */
function viewersOf(viewers: object): { response: { destroy(): void } }[] {
  return [...(viewers as { viewers: Set<{ response: { destroy(): void } }> }).viewers];
}
