import { chromium, type Browser, type Page } from 'playwright-core';
import { startViewed } from './viewed-app.js';

const POLICIES = 5000;
const SETTLE_MS = 1500;
/** A frame comes each second. */
const FRAME_LATE_MS = 30_000;

/** The wait of a reader for figures and the flow, from an empty cache. */
export function firstPictureMs(attempts: number): Promise<number[]> {
  return withPages(POLICIES_OF_A_SHOP, attempts, async (page, url) => {
    await page.goto(url);
    await page.locator('.verdict').waitFor();
    // When the main thread has drawn what came with the first frame.
    return Number(
      await page.evaluate(
        'new Promise((seen) => requestAnimationFrame(() => seen(performance.now())))',
      ),
    );
  });
}

/** The time that one frame keeps the main thread busy, with all policies in a table: the longest task of a few seconds. */
export function longestFrameMs(attempts: number): Promise<number[]> {
  return withPages(POLICIES, attempts, async (page, url) => {
    await page.goto(`${url}#policies`);
    await page.locator('table.rows tr').nth(5).waitFor();
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable');
    await devtools.send('Network.enable');
    const frameComes = (): Promise<void> =>
      new Promise((resolve, reject) => {
        const late = setTimeout(
          () => reject(new Error(`the page has had no frame for ${FRAME_LATE_MS / 1000} s`)),
          FRAME_LATE_MS,
        );
        devtools.once('Network.eventSourceMessageReceived', () => {
          clearTimeout(late);
          resolve();
        });
      });
    const busyMs = async (): Promise<number> => {
      const { metrics } = await devtools.send('Performance.getMetrics');
      return (metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN) * 1000;
    };
    const before = await busyMs();
    await frameComes();
    await page.waitForTimeout(SETTLE_MS);
    // One or two further frames have come: what all of them took is more than the longest.
    return (await busyMs()) - before;
  });
}

const POLICIES_OF_A_SHOP = 20;

async function withPages(
  count: number,
  attempts: number,
  measure: (page: Page, url: string) => Promise<number>,
): Promise<number[]> {
  const policies = Object.fromEntries(
    Array.from({ length: count }, (_, index) => [
      `policy-${index}`,
      { rate: 10, period: '1h' as const },
    ]),
  );
  const { url, close } = await startViewed({ policies, monitor: { maxSeries: 100 } }, 0);
  const browser = await openBrowser();
  try {
    const taken: number[] = [];
    for (let attempt = 0; attempt < attempts; attempt++) {
      // Drops and lights that move are drawn between frames; here the frames are what is measured.
      const context = await browser.newContext({ reducedMotion: 'reduce' });
      taken.push(await measure(await context.newPage(), url));
      await context.close();
    }
    return taken;
  } finally {
    await browser.close();
    await close();
  }
}

function openBrowser(): Promise<Browser> {
  const executablePath = process.env.CHROMIUM_BIN;
  if (!executablePath) {
    throw new Error('CHROMIUM_BIN is not set: start through npm run bench');
  }
  const args = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args });
}
