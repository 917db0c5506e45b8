import { mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import { root } from '../setup/ensure-built.js';
import { closeAtEnd } from './processes.js';

let opening: Promise<Browser> | undefined;

/** A real browser without a window, found or fetched like the other tools: one for a spec. Ends with `stopAll`. */
export const openBrowser = (): Promise<Browser> => (opening ??= launch());

async function launch(): Promise<Browser> {
  const tools = (await import(join(root, 'scripts/support/tools.mjs'))) as {
    ensureChromium(): string;
  };
  // Root, as whom containers often run, has no sandbox to be had.
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: tools.ensureChromium(), args });
  closeAtEnd(() => {
    // The next spec of this process has one of its own.
    opening = undefined;
    return browser.close();
  });
  return browser;
}

const LONGEST_WAIT_MS = 120_000;

export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings of the console, what a policy has stopped, and requests to anywhere else. */
  readonly complaints: string[];
}

export async function openPage(
  url: string,
  options: BrowserContextOptions = {},
  /** Before it is loaded. */
  prepare: (page: Page) => Promise<void> = () => Promise.resolve(),
): Promise<WatchedPage> {
  const browser = await openBrowser();
  const context = await browser.newContext({
    viewport: { width: 1440, height: 900 },
    // Without a graphics card whatever moves on a page takes most of a core.
    reducedMotion: 'reduce',
    ...options,
  });
  // Ends what hangs, and judges nothing.
  context.setDefaultTimeout(LONGEST_WAIT_MS);
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  const { origin } = new URL(url);
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== origin) complaints.push(`asked for ${request.url()}`);
  });
  await prepare(page);
  await page.goto(url);
  return { page, complaints };
}

const axeSource = createRequire(import.meta.url).resolve('axe-core/axe.min.js');

/** The findings that axe calls serious or critical, in a word each. */
export async function seriousFindings(page: Page): Promise<string[]> {
  // Told by the debugger, which a page's policy does not stop.
  if ((await inPage(page, 'typeof axe')) === 'undefined') {
    await inPage(page, readFileSync(axeSource, 'utf8'));
  }
  const { violations } = (await inPage(
    page,
    "axe.run({ resultTypes: ['violations'], preload: false })",
  )) as { violations: { id: string; impact: string; nodes: { html: string }[] }[] };
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
