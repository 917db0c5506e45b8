import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
import { type QuotaStatus } from 'nestjs-weir';
import { statusesIn, takeTour, tryLines } from './guides.js';
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
  });

  it('is three processes, and says where', () => {
    expect(new Set(addresses).size).toBe(3);
  });

  it('says at GET / of each process what to try, in lines that work as they stand', async () => {
    const [checkout, search, status] = await tryLines(addresses[2]!);
    for (const [{ output, seconds }, asked, guaranteed, burst] of [
      [checkout!, 800, 40, 80],
      [search!, 400, 20, 50],
    ] as const) {
      const allowed = statusesIn(output, 200);
      expect(allowed + statusesIn(output, 429) + statusesIn(output, 503)).toBe(asked);
      expect(allowed).toBeLessThanOrEqual(burst * (seconds + 1));
      expect(allowed).toBeGreaterThanOrEqual(Math.min(asked, guaranteed * (seconds - 1)));
    }
    expect(JSON.parse(status!.output)).toMatchObject({ capacity: 100 });
  });

  it('shows on its tour how much of the capacity is admitted, and of whom', async () => {
    const written = await takeTour('05-hierarchy', { REDIS_URL: '' });
    expect(written).toMatch(/second {2}checkout {7}search {2}together, of 100\n {2}1 .*\n {2}2 /);
    expect(written.match(/^ {2}✓/gm)).toHaveLength(4);
  });

  it('shows one account of all processes', async () => {
    const statuses = await until(async () => {
      const all = await Promise.all(
        addresses.map(async (url) => (await (await fetch(`${url}/status`)).json()) as QuotaStatus),
      );
      // The tokens granted to checkout, as the process of search sees them, too.
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
