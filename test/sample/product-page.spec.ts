import { BUILD_TIMEOUT_MS, ensureBuilt } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { startRedis, stopAll } from '../support/index.js';
import { until } from '../support/until.js';
import { takeTour, tryLines } from './guides.js';
import { ProductPage, UPSTREAMS } from './product-page.js';

beforeAll(ensureBuilt, BUILD_TIMEOUT_MS);
afterAll(stopAll);

const all = (mode: string): Record<string, string> =>
  Object.fromEntries(UPSTREAMS.map((name) => [name, mode]));

async function start(redisUrl: string): Promise<ProductPage> {
  const PORT = String(await freePort());
  return ProductPage.start({ PORT, REDIS_URL: redisUrl, PACE_MS: '150', UPSTREAM_MS: '20' });
}

/** Turns everything back, and asks until the page is normal again. */
async function recover(page: ProductPage): Promise<void> {
  await page.turn({ ...all('normal'), limit: 'large', operator: 'resume' });
  await until(
    async () => {
      const { level } = await page.ask('1', 'recovers');
      const { recovery, upstreams } = await page.state();
      const isClosed = upstreams.every(({ breaker }) => breaker === 'closed');
      return level === 0 && recovery.phase === 'normal' && isClosed;
    },
    { timeoutMs: 60_000, what: 'the page to recover' },
  );
}

describe.each(['memory', 'redis'])('the product page on %s', (store) => {
  let page: ProductPage;

  beforeAll(async () => {
    page = await start(store === 'redis' ? (await startRedis()).url : '');
  });

  beforeEach(() => recover(page), 70_000);

  it('level 0: has all that four services know', async () => {
    const { status, level, headers, body } = await page.askUntil(0, '1', 'ada');
    expect([status, level, headers['cache-status'], headers.age]).toEqual([
      200,
      0,
      undefined,
      undefined,
    ]);
    expect(body).toMatchObject({ id: '1', viewer: 'ada', recommendations: { viewer: 'ada' } });
    expect(body.reviews).toHaveLength(100);
    expect(Object.keys(body.sales ?? {})).toEqual(['today', 'total']);
  });

  it('level 1: who is over the limit gets the answer of a moment ago, whole', async () => {
    const { body: whole } = await page.askUntil(0, '1', 'eager');
    await page.turn({ limit: 'small' });
    const { status, headers, body } = await page.askUntil(1, '1', 'eager');
    expect([status, headers['x-degraded']]).toEqual([200, 'level=1; reason=limited']);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers.age).toMatch(/^\d+$/);
    expect(Number(headers.age)).toBeLessThanOrEqual(30);
    expect(headers['cache-status']).toMatch(/^weir; hit; ttl=\d+; detail=level1$/);
    expect(body).toEqual(whole);
  });

  it('level 2: the answer of this process, and its age', async () => {
    const { body: whole } = await page.askUntil(0, '1', 'ada');
    if (store === 'redis') await page.turn({ redis: 'off', ...all('dead') });
    else await page.turn({ operator: 'force 2' });
    const { status, headers, body } = await page.askUntil(2, '1', 'ada');
    if (store === 'redis') await page.turn({ redis: 'on' });
    expect(status).toBe(200);
    expect(headers['x-degraded']).toMatch(/^level=2; reason=(forced|failed|open|degraded)$/);
    expect(headers['cache-control']).toBe('no-store');
    expect(headers['cache-status']).toMatch(/^weir; hit; ttl=\d+; detail=level2$/);
    expect(Number(headers.age)).toBeLessThanOrEqual(300);
    expect(body).toEqual(whole);
  });

  it.each(['dead', 'slow'])(
    'level 3: the reviews are %s and no cache knows the product',
    async (mode) => {
      await page.turn({ reviews: mode });
      const { status, level, headers, body } = await page.askUntil(
        3,
        () => page.unknownProduct(),
        'ada',
      );
      expect([status, level]).toEqual([200, 3]);
      expect(headers['cache-control']).toBe('no-store');
      expect([headers.age, headers['cache-status']]).toEqual([undefined, undefined]);
      expect(Object.keys(body).sort()).toEqual(['id', 'image', 'name', 'price', 'viewer']);
    },
  );

  it.each(['dead', 'slow'])('level 4: all are %s, and there are words', async (mode) => {
    await page.turn(all(mode));
    const { status, level, headers, body } = await page.ask(page.unknownProduct(), 'ada');
    expect([status, level]).toEqual([503, 4]);
    expect(headers['content-type']).toContain('application/problem+json');
    expect(headers['cache-control']).toBe('no-store');
    expect(body.detail).toBe('The product cannot be loaded at the moment. Please try again later.');
  });

  it('never shows one user the answer of another, at any level', async () => {
    const users = ['ada', 'bob'];
    for (const user of users) await page.askUntil(0, '7', user);
    for (const operator of ['force 1', 'force 2', 'force 3']) {
      const wanted = Number(operator.at(-1));
      await page.turn({ operator });
      const answers = await Promise.all(
        users.map(async (user) => ({ user, ...(await page.askUntil(wanted, '7', user)) })),
      );
      for (const { user, level, body } of answers) {
        expect(body.viewer).toBe(user);
        if (level < 3) expect(body.recommendations).toMatchObject({ viewer: user });
      }
      // Answers to one of them in the caches are not there for a third.
      const { body } = await page.askUntil(3, '7', `new-${operator}`);
      expect(body.viewer).toBe(`new-${operator}`);
    }
  });

  it('ends when it is asked to', async () => {
    expect(await page.stop()).toBe('SIGTERM');
    // Errors of its handlers are told of, once and then by the minute; and there is nothing else.
    expect(page.written).toMatch(/ERROR.*ProductController\.detail failed/);
    const told = String.raw`\[ExceptionsHandler\]|\[RateLimitAlerts\]|got another answer|more within a minute`;
    expect(page.written).not.toMatch(new RegExp(`ERROR(?!.*(${told}))`));
  });
});

describe('the product page', () => {
  let page: ProductPage;

  beforeAll(async () => {
    page = await start('');
  });

  it('says which switches there are, and turns none if one is wrong', async () => {
    expect(await page.turn({ base: 'dead', nonsense: 'on' }, 400)).toMatchObject({
      message: expect.stringContaining('reviews') as string,
    });
    expect(await page.turn({ base: 'dead', sales: 'asleep' }, 400)).toMatchObject({
      message: '"sales" can be one of: normal, slow, dead.',
    });
    const { switches } = await page.state();
    expect(switches).toEqual({ ...all('normal'), limit: 'large' });
  });

  it('comes back by probes and every stage, and a stage lets its part through', async () => {
    const before = await page.state();
    await page.turn({ reviews: 'dead' });
    await until(
      async () => {
        await page.ask('1', 'ada');
        return (await page.state()).recovery.phase === 'degraded';
      },
      { timeoutMs: 20_000, what: 'the page to be degraded' },
    );
    expect((await page.ask('1', 'ada')).level).toBeGreaterThan(0);
    await recover(page);
    const { recovery } = await page.state();
    expect(recovery.recovered).toBe(before.recovery.recovered + 1);
    expect(recovery.probes.succeeded).toBeGreaterThanOrEqual(before.recovery.probes.succeeded + 3);
    expect(recovery.stages.map(({ percent }) => percent)).toEqual([10, 30, 50, 100]);
    for (const { percent, admitted, held, entered } of recovery.stages) {
      // Rounded up, once for each time that it was entered.
      expect(admitted).toBeGreaterThanOrEqual(1);
      expect(admitted).toBeLessThanOrEqual(((admitted + held) * percent) / 100 + entered);
    }
    expect((await page.ask('1', 'ada')).level).toBe(0);
  }, 120_000);

  it('does as operators say', async () => {
    // On a machine that stands still for a while, protection may be the first to give up.
    const expectFailure = async (): Promise<void> => {
      const { status, level } = await page.ask('1', 'ada');
      expect([500, 503, 504]).toContain(status);
      expect(level).toBe(0);
    };
    await page.turn({ operator: 'disable', reviews: 'dead' });
    await expectFailure();
    await page.turn({ operator: 'observe' });
    await expectFailure();
    expect((await page.state()).recovery.observing).toBe(true);
  });

  it('says at GET / what to try, in lines that work as they stand', async () => {
    await recover(page);
    const levels = await tryLines(page.url, /"(limit|operator)"|products\/[123]$/);
    const [whole, first, second, third, fourth] = levels.map(({ output }) => output);
    expect(whole).not.toContain('X-Degraded');
    expect(first).toContain('X-Degraded: level=1; reason=limited');
    expect(second).toContain('X-Degraded: level=2; reason=forced');
    expect(third).toContain('X-Degraded: level=3');
    expect(fourth).toContain('X-Degraded: level=4');
    await page.turn(all('normal'));
  }, 120_000);

  it('shows on its tour each level, and the way back', async () => {
    const env = { PORT: '0', REDIS_URL: '', PACE_MS: '150', UPSTREAM_MS: '20' };
    const written = await takeTour('06-product-page', env);
    for (const percent of [10, 30, 50, 100]) expect(written).toContain(`ramp, ${percent} %`);
    expect(written.match(/^ {2}✓/gm)).toHaveLength(7);
  }, 120_000);

  it('is a page with nothing from elsewhere', async () => {
    for (const [path, type] of [
      ['/', 'text/html'],
      ['/page.css', 'text/css'],
      ['/page.js', 'text/javascript'],
      ['/show.js', 'text/javascript'],
      ['/product.svg', 'image/svg+xml'],
    ]) {
      const response = await fetch(page.url + path, { headers: { accept: 'text/html, */*' } });
      expect([path, response.status]).toEqual([path, 200]);
      expect(response.headers.get('content-type')).toContain(type);
      expect((await response.text()).replace('http://www.w3.org/2000/svg', '')).not.toMatch(
        /https?:/,
      );
    }
  });
});
