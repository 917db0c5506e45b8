import { chromium, type Browser } from 'playwright-core';
import { closeAtEnd } from './processes.js';

/** A browser without a window; ends with `stopAll`. */
export async function openBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_BIN;
  if (!executablePath) {
    throw new Error('CHROMIUM_BIN is not set: start through npm test, or set it to a chromium');
  }
  // The user of a container is often root, for whom there is no sandbox.
  const browser = await chromium.launch({ executablePath, args: ['--no-sandbox'] });
  closeAtEnd(() => browser.close());
  return browser;
}
