import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { stopAll } from '../support/processes.js';
import { statusesIn, takeTour, tryLines } from './guides.js';
import { RunningSample } from './running-sample.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

interface Load {
  readonly allowed: number;
  readonly denied: number;
  readonly deniedBy: ReadonlySet<string>;
  readonly seconds: number;
}

describe('the API gateway', () => {
  let url: string;
  let sample: RunningSample;
  let addresses = 0;

  beforeAll(async () => {
    const port = await freePort();
    url = `http://localhost:${port}`;
    sample = await RunningSample.start('02-api-gateway', { PORT: String(port) }, '10.0.3.1');
  });

  /** An address that nobody has used: the limit on addresses is not what most tests are about. */
  const newAddress = (): string => {
    addresses++;
    return `10.${addresses >> 16}.${(addresses >> 8) & 255}.${addresses & 255}`;
  };

  const get = (path: string, headers: Record<string, string>): Promise<Response> =>
    fetch(url + path, { headers: { 'x-forwarded-for': newAddress(), ...headers } });

  async function load(
    count: number,
    path: string,
    headersOf: (id: number) => Record<string, string>,
  ): Promise<Load> {
    const startedMs = performance.now();
    const answers = await Promise.all(
      Array.from({ length: count }, async (_, id) => {
        const response = await get(path, headersOf(id));
        const body = (await response.json()) as { 'violated-policies'?: string[] };
        return { status: response.status, by: body['violated-policies'] ?? [] };
      }),
    );
    const allowed = answers.filter(({ status }) => status === 200).length;
    expect(answers.filter(({ status }) => status !== 200 && status !== 429)).toEqual([]);
    const deniedBy = new Set(answers.flatMap(({ by }) => by));
    const seconds = (performance.now() - startedMs) / 1000;
    return { allowed, denied: count - allowed, deniedBy, seconds };
  }

  const DETAIL = '/api/product/detail?id=1';

  it('shows on its tour what it promises: users, merchants, addresses as with nginx, reviews', async () => {
    const written = await takeTour('02-api-gateway');
    expect(written.match(/^ {2}✓/gm)).toHaveLength(8);
    // However slow the machine: it asks for reviews faster than 20 a second.
    expect(written).toMatch(/20 a second for all of them\n.*refused by non-core/);
  });

  it('says at GET / what to try, in lines that work as they stand', async () => {
    const [user, vip, merchant, one] = await tryLines(url);
    for (const [tried, burst, rate] of [
      [user!, 10, 10],
      [vip!, 50, 50],
      [merchant!, 100, 100],
      [one!, 21, 100],
    ] as const) {
      const [allowed, denied] = [200, 429].map((status) => statusesIn(tried.output, status));
      expect(allowed! + denied!).toBe(tried === merchant ? 600 : 60);
      expect(allowed).toBeGreaterThanOrEqual(burst);
      // So the rest was refused, if the machine asks faster than that.
      expect(allowed).toBeLessThanOrEqual(burst + rate * tried.seconds);
    }
  });

  it('tells what a route has: its path, its product, its callers', async () => {
    const detail = await get('/api/product/detail?id=7', { 'x-user': 'eve', 'x-merchant': 'm' });
    const told = detail.headers.get('ratelimit-policy')!.split(', ').sort();
    expect(told).toEqual([
      '"ip";q=21;w=1',
      '"merchant";q=100;w=1',
      '"product";q=1000;w=1',
      '"uri";q=1001;w=1',
      '"user";q=10;w=1',
    ]);
    const reviews = await get('/api/product/reviews?id=7', { 'x-user': 'eve' });
    expect(reviews.headers.get('ratelimit-policy')).toContain('"non-core";q=20;w=1');
  });

  it('tells callers of other tiers their own figures', async () => {
    const vip = {
      'x-user': 'ivy',
      'x-user-tier': 'vip',
      'x-merchant': 'big',
      'x-merchant-tier': 'S',
    };
    const told = (await get(DETAIL, vip)).headers.get('ratelimit-policy');
    expect(told).toContain('"user";q=50;w=1');
    expect(told).toContain('"merchant";q=1000;w=1');
  });

  it('refuses in the name of the limit that was used up', async () => {
    const one = { 'x-user': 'ona', 'x-user-tier': 'normal' };
    let refused = await get(DETAIL, one);
    const until = performance.now() + 30_000;
    while (refused.status === 200 && performance.now() < until) {
      const lot = await Promise.all(Array.from({ length: 30 }, () => get(DETAIL, one)));
      refused = lot.find(({ status }) => status !== 200) ?? lot[0]!;
    }
    expect(refused.status).toBe(429);
    expect(await refused.json()).toMatchObject({ 'violated-policies': ['user'] });
  });

  it('gives each merchant its own part of an interface', async () => {
    const reviews = '/api/product/reviews?id=2';
    const of = (merchant: string) => (id: number) => ({
      ...{ 'x-merchant': merchant, 'x-user': `${merchant}-${id}` },
    });
    const { allowed, deniedBy, seconds } = await load(12, reviews, of('greedy'));
    expect(allowed).toBeGreaterThanOrEqual(5);
    expect(allowed).toBeLessThanOrEqual(5 * (1 + seconds));
    if (allowed < 12) expect(deniedBy).toEqual(new Set(['merchant-api']));
    // Another one has its own, and so has the same one on another interface.
    expect((await get(reviews, of('modest')(0))).status).toBe(200);
    expect((await get(DETAIL, of('greedy')(99))).status).toBe(200);
  });

  it('ends when it is asked to, without a warning', async () => {
    expect(await sample.stop()).toBe('SIGTERM');
    expect(sample.written).not.toMatch(/WARN|ERROR/);
  });
});
