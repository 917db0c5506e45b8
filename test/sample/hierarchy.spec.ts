import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { type QuotaStatus } from 'nestjs-weir';
import { RunningSample } from './running-sample.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

describe('the hierarchy', () => {
  let sample: RunningSample;
  let addresses: string[];

  beforeAll(async () => {
    sample = await RunningSample.start('05-hierarchy', { REDIS_URL: '' }, '/status');
    const [, line = ''] = sample.written.split('\n');
    addresses = line.match(/http:\/\/localhost:\d+/g) ?? [];
  }, 60_000);

  /** Asks so many times, a few at once, and counts what passed. */
  async function load(urls: readonly string[], count: number) {
    const startedMs = performance.now();
    const statuses: number[] = [];
    let asked = 0;
    const ask = async (): Promise<void> => {
      while (asked < count) {
        const url = urls[asked++ % urls.length]!;
        statuses.push((await fetch(url)).status);
      }
    };
    await Promise.all(Array.from({ length: 10 }, ask));
    const allowed = statuses.filter((status) => status === 200).length;
    return {
      allowed,
      statuses: new Set(statuses),
      seconds: (performance.now() - startedMs) / 1000,
    };
  }

  it('is three processes, and says where', () => {
    expect(new Set(addresses).size).toBe(3);
  });

  it('gives two processes of an app together what the app has', async () => {
    const [first, second] = addresses;
    const { allowed, statuses, seconds } = await load([first!, second!], 600);
    // Never above the app's ceiling; and never less than what it is sure of.
    expect(allowed).toBeLessThanOrEqual(80 * (seconds + 1));
    expect(allowed).toBeGreaterThanOrEqual(Math.min(600, Math.floor(40 * seconds) - 40));
    for (const status of statuses) expect([200, 429, 503]).toContain(status);
  });

  it('leaves the other app what it is sure of', async () => {
    const busy = load(addresses.slice(0, 2), 400);
    const { allowed, seconds } = await load(addresses.slice(2), 200);
    await busy;
    expect(allowed).toBeLessThanOrEqual(50 * (seconds + 1));
    expect(allowed).toBeGreaterThan(0);
  });

  it('shows one account of all processes', async () => {
    const statuses = await until(async () => {
      const all = await Promise.all(
        addresses.map(async (url) => (await (await fetch(`${url}/status`)).json()) as QuotaStatus),
      );
      // What checkout was granted, as the process of search sees it too.
      const isKnown = all.every(({ apps }) => apps.checkout!.granted > 0 && apps.search!.used > 0);
      return isKnown ? all : undefined;
    });
    expect(statuses.map(({ capacity }) => capacity)).toEqual([100, 100, 100]);
  });

  it('ends when it is asked to, and takes all its processes along', async () => {
    await sample.stop();
    for (const url of addresses) await expect(fetch(url)).rejects.toThrow();
    expect(sample.written).not.toMatch(/ERROR/);
  });
});
