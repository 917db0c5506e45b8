import { type Page } from 'playwright-core';
import { guide } from '../../sample/07-flash-sale/guide.js';
import { settings } from '../../sample/07-flash-sale/settings.js';
import { Tour } from '../../sample/support/tour.js';
import { effective } from '../../lib/config/document/effective.js';
import { checkDocument } from '../../lib/config/schema/check.js';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseText } from '../../lib/config/sources/parse-text.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { runToEnd } from '../setup/run-to-end.js';
import { openPage } from '../support/browser.js';
import { freePort } from '../support/free-port.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { RunningSample } from './running-sample.js';

/** Says what the tour says only when it fails. */
class QuietTour extends Tour {
  readonly missed: string[] = [];

  override scene(): void {}

  override tell(): void {}

  override see(promised: string, seen: string, isKept: boolean): void {
    if (!isKept) this.missed.push(`${promised}: ${seen}`);
  }
}

describe('the flash sale', () => {
  let sample: RunningSample;
  let url: string;

  beforeAll(async () => {
    await ensureBuilt();
    const PORT = String(await freePort());
    sample = await RunningSample.start('07-flash-sale', { PORT }, '-- tour');
    url = `http://127.0.0.1:${PORT}`;
  }, BUILD_TIMEOUT_MS);
  afterAll(async () => {
    expect(await sample.stop()).toBe('SIGTERM');
    await stopAll();
  });

  const open = async (colorScheme: 'light' | 'dark', width: number): Promise<Page> => {
    const { page, complaints } = await openPage(url, {
      colorScheme,
      viewport: { width, height: 900 },
    });
    opened.push(complaints);
    return page;
  };
  const opened: string[][] = [];
  afterEach(() => expect(opened.flat()).toEqual([]));

  it('keeps what its tour promises, and the page shows it beside', async () => {
    const wide = await open('light', 1440);
    const tour = new QuietTour();
    await guide.tour(url, tour);
    expect(tour.missed).toEqual([]);
    const part = async (row: string, line: 'on' | 'off'): Promise<number> =>
      Number.parseInt(
        await wide.locator(`#numbers tr:has-text("${row}") td[data-line=${line}]`).innerText(),
        10,
      );
    // The load is none by now; both columns are of three times what the shop can serve.
    expect(await wide.locator('#same').innerText()).toBe('At 3 times what it can serve.');
    expect(await part('tier S in time', 'on')).toBeGreaterThan(await part('tier S in time', 'off'));
    expect(await part('tier C in time', 'on')).toBeLessThan(await part('tier S in time', 'on'));
    const without = await part('without an answer', 'off');
    expect(without).toBeGreaterThan(50);
    expect(await part('without an answer', 'on')).toBeLessThan(without / 2);
    expect(await wide.locator('#plot rect.inTime').count()).toBeGreaterThan(3);
    expect(await wide.locator('#plot rect.gaveUp').count()).toBeGreaterThan(0);
  }, 400_000);

  it('has buttons that do what they say, on a telephone as well', async () => {
    const narrow = await open('dark', 390);
    expect(await narrow.evaluate('document.documentElement.scrollWidth')).toBe(390);
    await narrow.locator('#profile button[data-value=promo]').click();
    const limitOfS = narrow.locator('.tier[data-tier=S] small');
    await until(async () => (await limitOfS.innerText()).includes('50,000/s'));
    await narrow.locator('#load button[data-value="0.5"]').click();
    const pressed = narrow.locator('#load button[aria-pressed=true]');
    await until(async () => (await pressed.innerText()) === '½');
    await narrow.locator('#load button[data-value="0"]').click();
    await narrow.locator('#profile button[data-value=normal]').click();
    await until(async () => (await limitOfS.innerText()).includes('10,000/s'));
  }, 60_000);

  it('says in a terminal what to try', async () => {
    const text = await (await fetch(url)).text();
    const lines = text.split('\n').filter((line) => line.startsWith('curl '));
    expect(lines).toHaveLength(2);
    for (const line of lines) {
      // The figures seen meanwhile are those that the tour sees.
      const { stdout } = await runToEnd('sh', ['-c', `sleep() { :; }; ${line}`], { cwd: root });
      expect(stdout).toMatch(/tier S in time +\d+ %/);
    }
    const wrong = await fetch(`${url}/switches`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{"load":"9"}',
    });
    expect(wrong.status).toBe(400);
  });
});

it('has the figures of the source for normal days and promotions (E-42…E-48, V-E15)', async () => {
  const file = 'sample/07-flash-sale/weir.yaml';
  const layer = await parseText(readFileSync(join(root, file), 'utf8'), file);
  const { policies } = settings;
  const document = checkDocument({ ...(layer as object), policies });
  const merchantIn = (profile: string) => effective(document, profile).policies!['merchant']!;
  expect(merchantIn('normal').tiers).toEqual({ S: 10_000, A: 5000, B: 1000, C: 100 });
  expect(merchantIn('promo').tiers).toEqual({ S: 50_000, A: 20_000, B: 5000, C: 500 });
  expect(merchantIn('promo').passThrough).toEqual({ S: 0.8, A: 0.5, limit: '20000/s' });
});
