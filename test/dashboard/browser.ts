import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { root } from '../setup/ensure-built.js';

/** A real browser, found or fetched like the other tools. */
export async function startBrowser(): Promise<Browser> {
  const tools = (await import(join(root, 'scripts/support/tools.mjs'))) as {
    ensureChromium(): string;
  };
  // Root has no sandbox to be had.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath: tools.ensureChromium(), args });
}

export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings of the console, and what the policy of the page has stopped. */
  readonly complaints: string[];
}

export async function openPage(
  browser: Browser,
  url: string,
  options: BrowserContextOptions = {},
): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  await page.goto(url);
  await page.getByRole('button', { name: 'Live' }).waitFor();
  return { page, complaints };
}

const axeSource = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** What axe calls serious or critical, in a word each. */
export async function seriousFindings(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: axeSource });
  const { violations } = (await inPage(page, 'axe.run()')) as {
    violations: { id: string; impact: string; nodes: { html: string }[] }[];
  };
  return violations
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, nodes }) => `${id}: ${nodes[0]?.html}`);
}

/** The value of an expression there, where names of browsers mean something. */
export function inPage(page: Page, expression: string): Promise<unknown> {
  return page.evaluate(expression);
}

/** For people: in the folder that SCREENSHOTS names, if it does. */
export async function keepScreenshot(page: Page, name: string): Promise<void> {
  const { SCREENSHOTS: folder } = process.env;
  if (!folder) return;
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
