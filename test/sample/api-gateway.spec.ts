import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { stopAll } from '../support/processes.js';
import { until } from '../support/until.js';
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

  it.each([
    ['normal', 10],
    ['vip', 50],
  ])('gives a user of the tier %s %d a second', async (tier, rate) => {
    const user = { 'x-user': `user-${tier}`, 'x-user-tier': tier };
    const { allowed, deniedBy, seconds } = await load(rate + 60, DETAIL, () => user);
    expect(allowed).toBeGreaterThanOrEqual(rate);
    expect(allowed).toBeLessThanOrEqual(rate * (1 + seconds));
    if (allowed < rate + 60) expect(deniedBy).toEqual(new Set(['user']));
  });

  it.each([
    ['normal', 100],
    ['S', 1000],
  ])('gives a merchant of the tier %s %d a second, whoever calls', async (tier, rate) => {
    const path = '/api/product/detail?id=merchant';
    const merchant = { 'x-merchant': `merchant-${tier}`, 'x-merchant-tier': tier };
    const users = (id: number) => ({ ...merchant, 'x-user': `${tier}-${id}` });
    const { allowed, seconds } = await load(150, path, users);
    expect(allowed).toBeGreaterThanOrEqual(Math.min(rate, 150));
    expect(allowed).toBeLessThanOrEqual(rate * (1 + seconds));
    const { headers } = await get(path, users(150));
    expect(headers.get('ratelimit-policy')).toContain(`"merchant";q=${rate};w=1`);
  });

  it('slows an address down to 100 a second before it refuses', async () => {
    const one = (id: number) => ({ 'x-user': `slow-${id}`, 'x-forwarded-for': '192.0.2.1' });
    const { allowed, denied, deniedBy, seconds } = await load(60, DETAIL, one);
    // One goes at once and 20 wait, as with nginx' burst=20.
    expect(allowed).toBeGreaterThanOrEqual(21);
    expect(allowed).toBeLessThanOrEqual(21 + 100 * seconds);
    // The last of them waits for its turn, 10 ms after the one before it.
    expect(seconds).toBeGreaterThan(0.15);
    if (denied > 0) expect(deniedBy).toEqual(new Set(['ip']));
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

  it('refuses what the shop can do without sooner than its heart', async () => {
    const users = (id: number) => ({ 'x-user': `crowd-${id}` });
    // The bucket of the route is full again when a request leaves all but one.
    await until(async () => {
      const { headers } = await get('/api/product/reviews?id=1', { 'x-user': 'looks' });
      return headers.get('ratelimit')!.includes('"non-core";r=19;');
    });
    const { allowed, seconds } = await load(60, '/api/product/reviews?id=1', users);
    expect(allowed).toBeGreaterThanOrEqual(19);
    expect(allowed).toBeLessThanOrEqual(20 * (1 + seconds));
  });

  it('ends when it is asked to, without a warning', async () => {
    expect(await sample.stop()).toBe('SIGTERM');
    expect(sample.written).not.toMatch(/WARN|ERROR/);
  });
});
