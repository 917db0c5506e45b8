import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter, type NestFastifyApplication } from '@nestjs/platform-fastify';
import { RateLimitMonitor } from 'nestjs-weir';
import { Catalog } from '../../sample/00-tour/catalog.js';
import { Traffic } from '../../sample/00-tour/traffic.js';
import { ShopModule } from '../../sample/00-tour/shop.module.js';
import { runToEnd } from '../setup/run-to-end.js';
import { BUILD_TIMEOUT_MS, ensureBuilt, root } from '../setup/ensure-built.js';
import { spawnOwned, stopAll } from '../support/processes.js';
import { until } from '../support/until.js';

describe('the Redis of a sample', () => {
  beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
  afterAll(stopAll);

  it('ends with it, also if that is killed', async () => {
    const file = join(root, 'build/sample/05-hierarchy/redis.js');
    const script = `import('${file}').then(async (m) => console.log((await m.startRedis()).url))`;
    const env = { ...process.env, REDIS_URL: '' };
    const sample = spawnOwned(process.execPath, ['-e', script], { env });
    const [told] = (await once(sample.stdout!, 'data')) as [Buffer];
    const port = Number(new URL(String(told).trim()).port);
    const isThere = (): Promise<boolean> =>
      new Promise((resolve) => {
        const socket = connect(port, '127.0.0.1', () => resolve(true)).on('error', () => {
          resolve(false);
        });
        socket.once('connect', () => socket.destroy());
      });
    expect(await isThere()).toBe(true);
    sample.kill('SIGKILL');
    await until(async () => !(await isThere()), { what: 'the end of Redis' });
  });
});

describe('the traffic of the tour', () => {
  afterEach(() => void vi.useRealTimers());

  it('rises from nothing, and does not make up for the time before it began', () => {
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] });
    const ask = vi.spyOn(Traffic.prototype as unknown as { ask(): void }, 'ask');
    ask.mockImplementation(() => undefined);
    const asked = (): number => ask.mock.calls.splice(0).length;
    const traffic = new Traffic();
    vi.advanceTimersByTime(5000);
    traffic.start(['http://127.0.0.1:1']);
    vi.advanceTimersByTime(1000);
    // About 280 a second in the end, and a third of that by now.
    expect(asked()).toBeLessThan(100);
    vi.advanceTimersByTime(9000);
    expect(asked()).toBeGreaterThan(2000);
    traffic.stop();
  });

  it('asks for more until the end of what a button said last', () => {
    vi.useFakeTimers({
      toFake: ['setInterval', 'clearInterval', 'setTimeout', 'performance'],
    });
    const ask = vi.spyOn(Traffic.prototype as unknown as { ask(): void }, 'ask');
    ask.mockImplementation(() => undefined);
    const traffic = new Traffic();
    traffic.start(['http://127.0.0.1:1']);
    vi.advanceTimersByTime(5000);
    const inASecond = (): number => {
      ask.mock.calls.length = 0;
      vi.advanceTimersByTime(1000);
      return ask.mock.calls.length;
    };
    const steady = inASecond();
    traffic.raise(['search'], 6, 10);
    vi.advanceTimersByTime(8000);
    traffic.raise(['search'], 6, 10);
    vi.advanceTimersByTime(8000);
    expect(inASecond()).toBeGreaterThan(2 * steady);
    vi.advanceTimersByTime(2000);
    expect(inASecond()).toBeLessThan(1.2 * steady);
    traffic.stop();
  });
});

describe('a node of the tour', () => {
  let app: NestFastifyApplication;
  const addresses: string[] = [];
  beforeAll(async () => {
    const settings = { nodeId: 'api-1', store: { type: 'memory' }, actions: [] } as const;
    app = await NestFactory.create(
      ShopModule.on({ ...settings, addresses }),
      new FastifyAdapter(),
      { logger: false },
    );
    await app.listen(0, '127.0.0.1');
    addresses.push(await app.getUrl());
  });
  afterAll(() => app.close());

  it('says at GET / what to try, in lines that work as they stand', async () => {
    const page = (await app.inject({ url: '/' })).body;
    expect(page).not.toContain('<script');
    expect(page).toContain('<a href="weir/">The dashboard</a>');
    const lines = [...page.matchAll(/<pre>(.*?)<\/pre>/gs)].flatMap(([, text]) =>
      text!.split('\n'),
    );
    const written: string[] = [];
    for (const line of lines) {
      written.push((await runToEnd('sh', ['-c', line], { cwd: root })).stdout);
    }
    const [search, checkout, reports, logins, login, products] = written;
    expect(search).toMatch(/^HTTP\/1.1 200[\s\S]*ratelimit: "search-user";r=\d+/);
    expect(checkout).toMatch(/ 40 200$/m);
    expect(reports).toMatch(/ \d+ 200$/m);
    expect(logins!.trim()).toBe('201\n201\n201\n201\n201\n429\n429');
    expect(login).toMatch(/^HTTP\/1.1 429[\s\S]*retry-after: \d+/);
    expect(products).toMatch(/^(?:200 0\.\d+\n){9}$/);
  });

  it('opens the breaker of a slow database, also where answers were late before', async () => {
    const catalog = app.get(Catalog);
    const visitors = async (number: number): Promise<void> => {
      const ask = (_: unknown, index: number): PromiseLike<unknown> =>
        app.inject({ url: `/products/${index}`, headers: { 'x-client': `client-${index}` } });
      await Promise.all(Array.from({ length: number }, ask));
    };
    // So many that those which are late make half of all before the failures do.
    await visitors(18);
    // Late, and within the deadline.
    catalog.slowFor(60, 400);
    await visitors(7);
    catalog.slowFor(60);
    const degraded = await until(
      async () => {
        await visitors(20);
        const { resources } = app.get(RateLimitMonitor).state();
        return resources.some(({ phase }) => phase === 'degraded') ? resources : undefined;
      },
      { what: 'a page that is degraded', intervalMs: 1 },
    );
    expect(degraded).toMatchObject([
      { resource: 'catalog-db', breaker: 'open' },
      { resource: 'product-page' },
    ]);
  });
});
