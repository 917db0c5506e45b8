// The pictures of the dashboard in the README: the tour as it runs, light and dark.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { chromium } from 'playwright-core';
import { ensureRunnables } from './support/compile.mjs';
import { ensureInstall } from './support/install.mjs';
import { inRoot } from './support/root.mjs';
import { main, step } from './support/step.mjs';
import { ensureChromium } from './support/tools.mjs';

const VIEWPORT = { width: 1280, height: 800 };
/** Until the charts have something to show, and it is known what is usual. */
const QUIET_MS = 270_000;
const BURST_MS = 9000;

await main(async () => {
  await ensureInstall();
  await ensureRunnables();
  const env = { ...process.env, PORT: '0' };
  const tour = spawn(process.execPath, [inRoot('build/sample/00-tour/main.js')], { env });
  try {
    const address = await addressOf(tour);
    await step('screenshots', () => takeBoth(address));
  } finally {
    tour.kill('SIGTERM');
    await once(tour, 'exit');
  }
});

function addressOf(tour) {
  return new Promise((resolve, reject) => {
    let written = '';
    // Read to the end: what nobody reads would stop the tour.
    tour.stdout.setEncoding('utf8').on('data', (part) => {
      written += part;
      const found = /http:\/\/127\.0\.0\.1:\d+\/weir\//.exec(written);
      if (found) resolve(found[0]);
    });
    tour.once('exit', () => reject(new Error('the tour did not start')));
  });
}

async function takeBoth(address) {
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const browser = await chromium.launch({ executablePath: ensureChromium(), args });
  const pages = await Promise.all(
    ['light', 'dark'].map(async (theme) => {
      const page = await browser.newPage({ viewport: VIEWPORT, colorScheme: theme });
      await page.goto(address);
      return { theme, page };
    }),
  );
  await pause(QUIET_MS);
  await pages[0].page.getByRole('button', { name: 'Burst' }).click();
  await pause(BURST_MS);
  for (const { theme, page } of pages) {
    const path = inRoot(`docs/dashboard-${theme}.jpg`);
    await page.screenshot({ path, type: 'jpeg', quality: 72 });
  }
  await browser.close();
}
