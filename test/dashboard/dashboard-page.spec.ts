import { statSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { RateLimitConfig } from 'nestjs-weir';
import { type Browser, type Page } from 'playwright-core';
import { Dashboard } from '../../lib/dashboard/dashboard.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { until } from '../support/until.js';
import { inPage, keepScreenshot, openPage, seriousFindings, startBrowser } from './browser.js';
import { open, startOps, type OpsApp } from './ops-app.js';

const HOSTILE = '<img src=x onerror="document.title=1">\u202e\u0007';

let browser: Browser;
let ops: OpsApp;
let url: string;

beforeAll(async () => {
  await ensureBuilt();
  browser = await startBrowser();
  ops = await startOps(
    'fastify',
    {
      monitor: { keys: 'plain' },
      overload: { enabled: true, mode: 'observe' },
      policies: {
        search: { rate: 3, period: '1h', key: { header: 'x-client' } },
        page: { rate: 1, period: '1h', key: 'global' },
      },
    },
    { write: { guard: open }, actions: [{ name: 'Ring', text: 'A bell.', run: () => 'It rang.' }] },
  );
  url = `${ops.url}/ops/limits/`;
  const headers = { 'x-client': encodeURIComponent(HOSTILE) };
  for (let n = 0; n < 8; n++) await (await ops.get('/search', headers)).text();
  for (let n = 0; n < 3; n++) await (await ops.get('/page')).text();
  await (await ops.get('/stock')).text();
}, BUILD_TIMEOUT_MS);
afterAll(async () => {
  await browser?.close();
  await ops?.close();
});

const PANELS = [
  ...['Where the tokens go', 'Alerts', 'Decisions', 'Who is limited', 'Policies', 'Resources'],
  ...['Fleet', 'Overload of this process', 'Configuration', 'Capacity'],
];

const editor = (page: Page) => page.getByLabel('The configuration, as JSON or YAML');

/** The editor is there before what it edits has come. */
const documentIn = (page: Page): Promise<string> =>
  until(async () => (await editor(page).inputValue()) || undefined, { what: 'the document' });

describe('the page, in a browser', () => {
  it('is small', () => {
    const folder = join(root, 'assets/dashboard');
    const bytes = (isZip: boolean): number =>
      readdirSync(folder)
        .filter((name) => name.endsWith('.gz') === isZip)
        .reduce((sum, name) => sum + statSync(join(folder, name)).size, 0);
    expect(bytes(false)).toBeLessThanOrEqual(110_000);
    expect(bytes(true)).toBeLessThanOrEqual(45_000);
  });

  it.each([
    ['light', 1440],
    ['dark', 1440],
    ['light', 390],
    ['dark', 390],
  ] as const)(
    'shows every panel, %s, at %i px, and can be read by everybody',
    async (theme, width) => {
      const viewport = { width, height: 900 };
      const { page, complaints } = await openPage(browser, url, { colorScheme: theme, viewport });
      for (const name of PANELS) await page.getByRole('heading', { name, exact: true }).waitFor();
      expect(await inPage(page, 'document.documentElement.dataset.theme')).toBe(theme);
      // Nothing but tables and the tabs may be wider than the screen, and those scroll by themselves.
      expect(await inPage(page, 'document.documentElement.scrollWidth')).toBeLessThanOrEqual(width);
      await keepScreenshot(page, `overview-${theme}-${width}`);
      expect(complaints).toEqual([]);
      await page.context().close();
      const bypassing = await openPage(browser, url, {
        colorScheme: theme,
        viewport,
        bypassCSP: true,
      });
      expect(await seriousFindings(bypassing.page)).toEqual([]);
      await bypassing.page.context().close();
    },
  );

  it('shows each view, without a complaint and readable by everybody', async () => {
    const { page, complaints } = await openPage(browser, url, { bypassCSP: true });
    for (const name of ['Policies', 'Fleet', 'Resources', 'Config', 'Capacity']) {
      await page.getByRole('link', { name, exact: true }).click();
      await page
        .getByRole('heading', { name: name === 'Config' ? 'Configuration' : name, exact: true })
        .first()
        .waitFor();
      await keepScreenshot(page, name.toLowerCase());
      expect([name, await seriousFindings(page)]).toEqual([name, []]);
    }
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows hostile names as text', async () => {
    const { page, complaints } = await openPage(browser, url);
    const cell = page.locator('.keys code').first();
    await cell.waitFor();
    expect(await cell.textContent()).toMatch(/img/);
    expect(await page.locator('img').count()).toBe(0);
    expect(await page.title()).not.toBe('1');
    await page.getByLabel('Why is this one limited?').fill(HOSTILE);
    await page.getByRole('button', { name: 'Look', exact: true }).click();
    await page.locator('.looked p').first().waitFor();
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('says which policy turns a key away, and runs the buttons of the application', async () => {
    const { page } = await openPage(browser, url);
    await page.getByLabel('Why is this one limited?').fill(encodeURIComponent(HOSTILE));
    await page.getByRole('button', { name: 'Look', exact: true }).click();
    await page.getByText('has no token left of 3').waitFor();
    await page.getByRole('button', { name: 'Ring' }).click();
    await page.getByText('A bell. It rang.').waitFor();
    await page.context().close();
  });

  it('refuses a wrong change with its path, applies a right one, and rolls it back', async () => {
    const { page, complaints } = await openPage(browser, `${url}#config`);
    const apply = page.getByRole('button', { name: /^Apply to/ });
    const before = await documentIn(page);
    const rate = /"rate": 3\b/;
    expect(before).toMatch(rate);
    await editor(page).fill(before.replace(rate, '"rate": -3'));
    await page.getByText('policies.search.rate: expected').waitFor();
    expect(await apply.isDisabled()).toBe(true);
    await editor(page).fill(before.replace(rate, '"rate": 30'));
    await page.locator('.impact .diff').getByText('policies.search.rate').waitFor();
    await page.getByText('No restart is needed').waitFor();
    await keepScreenshot(page, 'config-change');
    await apply.click();
    await page.getByText(/is in force on this node/).waitFor();
    const config = ops.app.get(RateLimitConfig);
    expect(config.current().document.policies!.search!.rate).toBe(30);
    const { revision } = config.current();
    await page.getByRole('button', { name: String(revision - 1), exact: true }).click();
    await page.getByRole('button', { name: `Roll back to revision ${revision - 1}` }).click();
    await page.getByText(`Revision ${revision + 1} is in force`).waitFor();
    expect(config.current().document.policies!.search!.rate).toBe(3);
    expect(complaints).toEqual([]);
    await page.context().close();
  });

  it('shows who was faster, and keeps the text', async () => {
    const { page } = await openPage(browser, `${url}#config`);
    const before = await documentIn(page);
    const mine = before.replace(/"rate": 3\b/, '"rate": 33');
    await editor(page).fill(mine);
    await page.getByText('No restart is needed').waitFor();
    const config = ops.app.get(RateLimitConfig);
    await config.update({ policies: { page: { rate: 2 } } }, { by: 'somebody' });
    await page.getByRole('button', { name: /^Apply to/ }).click();
    await page.getByText(/Somebody was faster: revision \d+ by somebody/).waitFor();
    expect(await editor(page).inputValue()).toBe(mine);
    await keepScreenshot(page, 'config-conflict');
    expect(config.current().document.policies!.search!.rate).toBe(3);
    await page.context().close();
  });

  it('can be used by keyboard alone', async () => {
    const { page } = await openPage(browser, url);
    await page.keyboard.press('Tab');
    expect(await inPage(page, 'document.activeElement?.textContent')).toBe('Skip to the content');
    await page.keyboard.press('g');
    await page.keyboard.press('p');
    await page.getByRole('heading', { name: 'Policies', exact: true }).waitFor();
    await page.keyboard.press('/');
    await page.waitForFunction("document.activeElement?.id === 'filter'");
    await page.keyboard.type('sea');
    await page.getByText('1 of 2').waitFor();
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
    expect(await inPage(page, 'document.activeElement?.textContent')).toBe('search');
    await page.keyboard.press('?');
    await page.getByRole('dialog', { name: 'Keys' }).waitFor();
    await page.keyboard.press('Escape');
    await page.keyboard.press('3');
    await page.waitForFunction("location.hash.includes('h=hours')");
    await page.context().close();
  });

  it('moves nothing for whoever does not want that', async () => {
    const { page } = await openPage(browser, url, { reducedMotion: 'reduce' });
    for (let n = 0; n < 20; n++) await (await ops.get('/stock')).text();
    await page.locator('.drops').first().waitFor({ state: 'attached' });
    const moving = await inPage(page, 'document.getAnimations().length');
    expect(moving).toBe(0);
    await page.context().close();
  });

  it('says when it was heard last while the stream is cut, and goes on by itself', async () => {
    const { page } = await openPage(browser, url);
    await page.route('**/api/stream', (route) => route.abort());
    const { viewers } = ops.app.get(Dashboard, { strict: false });
    for (const { response } of viewersOf(viewers)) response.destroy();
    await page.getByText(/The stream is lost: last heard/).waitFor();
    await page.locator('main.stale').waitFor();
    await page.unroute('**/api/stream');
    await page.getByRole('button', { name: 'Try now' }).click();
    await page.getByRole('button', { name: 'Live' }).waitFor();
    await page.locator('main:not(.stale)').waitFor();
    await page.context().close();
  });

  it('has no buttons for changes where nothing may be changed, and says what is missing', async () => {
    const readOnly = await startOps('express');
    const { page, complaints } = await openPage(browser, `${readOnly.url}/ops/limits/`);
    await page.getByText('Nobody is turned away.').waitFor();
    await page.getByText('No policy has decided yet.').waitFor();
    await keepScreenshot(page, 'empty');
    await page.getByRole('link', { name: 'Config', exact: true }).click();
    await page.getByText('read only').waitFor();
    expect(await page.getByRole('button', { name: /Apply|Discard/ }).count()).toBe(0);
    expect(complaints).toEqual([]);
    await page.context().close();
    await readOnly.close();
  });
});

/** As a network that breaks would cut them. */
function viewersOf(viewers: object): { response: { destroy(): void } }[] {
  return [...(viewers as { viewers: Set<{ response: { destroy(): void } }> }).viewers];
}
