import { Controller, Get, Param, Post } from '@nestjs/common';
import { Redis } from 'ioredis';
import { Degradation, Degrade, RateLimiter } from 'nestjs-weir';
import { startRedis, stopAll } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';
import { moduleOptions, productsController, startLimited } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { type HttpApp } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

afterAll(stopAll);

describe('operators', () => {
  let app: HttpApp;
  let stage: Stage;
  let degradation: Degradation;
  const mark = async (path: string): Promise<string> => {
    const { status, headers } = await app.get(path);
    return `${status} ${headers.get('x-degraded') ?? 'as it is'}`;
  };

  beforeEach(async () => {
    stage = new Stage(new ManualClock());
    const Products = productsController(stage, (offer) => Get(offer));
    app = await startLimited([Products], moduleOptions(stage));
    degradation = app.app.get(Degradation);
    await app.app.get(RateLimiter).acquire({ policy: 'closed', key: 'global' });
  });

  afterEach(() => app.close());

  it('may pin a level', async () => {
    await app.get('/all');
    degradation.force('Products.all', 3);
    expect(await mark('/all')).toBe('200 level=3; reason=forced');
    degradation.force('Products.all');
    expect(await mark('/all')).toBe('200 level=1; reason=forced');
  });

  it.each(['disable', 'observe'] as const)('%s: as if there were no @Degrade', async (word) => {
    degradation[word]('Products.all');
    expect(await mark('/all')).toBe('200 as it is');
    stage.throws(new Error('down'));
    expect(await mark('/all')).toBe('500 as it is');
    stage.works();
    stage.isLimited = true;
    expect(await mark('/all')).toBe('429 as it is');
    degradation.resume('Products.all');
    expect(await mark('/all')).toBe('200 level=1; reason=limited');
  });

  it.each(['disable', 'observe'] as const)('%s: a slow handler is waited for', async (word) => {
    degradation[word]('Products.all');
    stage.hangs();
    const entered = stage.entered();
    const answer = mark('/all');
    await entered;
    stage.clock.advance(60_000);
    stage.finish();
    expect(await answer).toBe('200 as it is');
  });

  it('may say that a resource is in trouble', async () => {
    degradation.trip('Products.all', 'breaker');
    expect(await mark('/all')).toBe('200 level=3; reason=degraded');
    degradation.trip('Products.level4');
    const causes = degradation.stats().resources.map(({ resource, cause }) => [resource, cause]);
    expect(causes).toEqual(
      expect.arrayContaining([
        ['Products.all', 'breaker'],
        ['Products.level4', 'operator'],
      ]),
    );
  });

  it('are told of names that nobody has', () => {
    expect(() => degradation.force('Products.al')).toThrow(/one of .*Products\.all/);
  });

  it('see a resource fall and come back by the ramp', async () => {
    const states: string[] = [];
    degradation.on('state', ({ to, percent }) => states.push(`${to} ${percent}`));
    stage.throws(new Error('down'));
    for (let i = 0; i < 20; i++) await app.get('/level4');
    const calls = stage.calls;
    expect(await mark('/level4')).toBe('200 level=4; reason=degraded');
    expect(stage.calls).toBe(calls);
    stage.works();
    for (let s = 0; s < 200 && !states.includes('normal 100'); s++) {
      stage.clock.advance(1000);
      for (let i = 0; i < 3; i++) await app.get('/level4');
    }
    expect(states).toEqual([
      ...['degraded 0', 'probing 0'],
      ...['ramp 10', 'ramp 30', 'ramp 50', 'ramp 100', 'normal 100'],
    ]);
  });

  it('warm caches up before they are needed', async () => {
    const loaded: unknown[] = [];
    const report = await degradation.warmUp('Products.level2', [{}, { query: { a: '1' } }], (q) => {
      loaded.push(q);
      return { name: 'warm' };
    });
    expect([report.loaded, loaded.length]).toEqual([2, 2]);
    stage.throws(new Error('down'));
    for (const path of ['/level2', '/level2?a=1']) {
      expect(await (await app.get(path)).json()).toEqual({ name: 'warm' });
    }
    expect((await app.get('/level2?a=2')).status).toBe(500);
  });
});

describe('level 1 on Redis', () => {
  it('is shared by the processes of a fleet, survives poison, and does not miss a dead Redis', async () => {
    const redis = await startRedis();
    const store = { type: 'redis', url: redis.url } as const;
    const clock = new ManualClock();
    const stages = [new Stage(clock), new Stage(clock)];
    const apps = await Promise.all(
      stages.map((stage) =>
        startLimited([productsController(stage, (offer) => Get(offer))], {
          ...moduleOptions(stage),
          store,
          service: 'shop',
        }),
      ),
    );
    const [one, other] = apps as [HttpApp, HttpApp];
    const client = new Redis(redis.adminUrl);
    try {
      await until(async () => {
        clock.advance(11_000);
        await one.get('/level1');
        return (await client.keys('weir:answer:*')).length > 0;
      });
      stages[1]!.throws(new Error('down'));
      const answer = await until(async () => {
        const response = await other.get('/level1');
        return response.ok ? response : undefined;
      });
      expect(answer.headers.get('x-degraded')).toBe('level=1; reason=failed');
      expect(await answer.json()).toMatchObject({ name: 'kettle' });

      const [key] = await client.keys('weir:answer:*');
      for (const poison of ['{', '[]', '{"v":9,"t":1,"kind":"json","body":{}}']) {
        await client.set(key!, poison);
        expect((await other.get('/level1')).status).toBe(500);
      }

      stages[1]!.works();
      await other.get('/all');
      await redis.stop();
      stages[1]!.throws(new Error('down'));
      const local = await other.get('/all');
      expect(local.headers.get('x-degraded')).toMatch(/^level=2/);
    } finally {
      client.disconnect();
      let isClosed = false;
      const closing = Promise.all(apps.map((app) => app.close())).finally(() => (isClosed = true));
      // Calls to a Redis that is gone are given up in time, and time is in our hands.
      await until(() => {
        clock.advance(1000);
        return isClosed;
      });
      await closing;
    }
  });

  it('is not connected to where there is no @Degrade', async () => {
    const redis = await startRedis();
    const app = await startLimited([], { store: { type: 'redis', url: redis.url } });
    const client = new Redis(redis.adminUrl);
    try {
      await app.app.get(RateLimiter).ready();
      // The limiter's connection, the one that hears of changes, and the one that asks.
      expect(
        String(await client.client('LIST'))
          .trim()
          .split('\n'),
      ).toHaveLength(3);
    } finally {
      client.disconnect();
      await app.close();
    }
  });
});

describe('warm', () => {
  const clock = new ManualClock();
  const asked: string[] = [];

  @Controller()
  class Pages {
    private readonly ids = ['1', '2'];

    @Get('page/:id')
    @Degrade({
      resource: 'catalog',
      warm: (pages: Pages) =>
        pages.ids.map((id) => ({ params: { id }, load: () => pages.page(id) })),
    })
    page(@Param('id') id: string): object {
      asked.push(id);
      if (asked.length > 3) throw new Error('down');
      return { id };
    }

    @Get('price/:id')
    @Degrade({
      resource: 'catalog',
      warm: async function* (pages: Pages) {
        for (const id of pages.ids) yield await Promise.resolve({ params: { id }, load: () => id });
      },
    })
    price(): string {
      throw new Error('down');
    }

    @Get('broken')
    @Degrade({
      resource: 'broken',
      warm: function* () {
        const load = (): never => {
          throw new Error('no such\npage');
        };
        yield { load };
        yield { query: { a: '1' }, load: () => undefined };
        yield { path: '/elsewhere', load: () => 1 };
        yield 'nonsense' as never;
        yield { query: { a: '2' }, load: () => ({ is: 'fine' }) };
        throw new Error('the list is over');
      },
    })
    broken(): never {
      throw new Error('down');
    }

    @Get('cold')
    @Degrade()
    cold(): object {
      return {};
    }
  }

  let app: HttpApp;
  let degradation: Degradation;
  const warnings = new Warnings();

  beforeEach(async () => {
    asked.length = 0;
    app = await startLimited([Pages], { clock });
    degradation = app.app.get(Degradation);
    warnings.start();
  });

  afterEach(async () => {
    warnings.stop();
    await app.close();
  });

  it('fills the caches of all routes of a resource, by questions of their own', async () => {
    expect(await degradation.warm('catalog')).toEqual([
      { resource: 'catalog', warmed: 4, failed: 0 },
    ]);
    expect(asked).toEqual(['1', '2']);
    asked.push('the third', 'and the fourth');
    const page = await app.get('/page/2');
    expect([await page.json(), page.headers.get('x-degraded')]).toEqual([
      { id: '2' },
      'level=1; reason=failed',
    ]);
    expect(await (await app.get('/price/1')).text()).toBe('1');
    expect((await app.get('/page/3')).status).toBe(500);
  });

  it('goes on where a question fails, and tells of it in one line', async () => {
    expect(await degradation.warm()).toEqual([
      { resource: 'catalog', warmed: 4, failed: 0 },
      { resource: 'broken', warmed: 1, failed: 5 },
    ]);
    expect(await (await app.get('/broken?a=2')).json()).toEqual({ is: 'fine' });
    expect(warnings.texts).toEqual([
      expect.stringMatching(/^Warm-up of 'broken': 5 of 6 questions failed: ".*"$/),
    ]);
  });

  it('is done once for those who ask at the same time', async () => {
    const reports = await Promise.all([degradation.warm('catalog'), degradation.warm('catalog')]);
    expect(reports[0]).toEqual(reports[1]);
    expect(asked).toEqual(['1', '2']);
    await degradation.warm('catalog');
    expect(asked).toHaveLength(4);
  });

  it('knows the names that have questions', async () => {
    await expect(degradation.warm('Pages.cold')).rejects.toThrow(/warm.*broken, catalog/);
  });

  it('has nothing to do where nobody lists a question', async () => {
    const plain = await startLimited(
      [productsController(new Stage(clock), (offer) => Get(offer))],
      {
        ...moduleOptions(new Stage(clock)),
      },
    );
    expect(await plain.app.get(Degradation).warm()).toEqual([]);
    await plain.close();
  });

  it.each([
    ['level1 and level2', { level1: false, level2: false } as const, Get('x')],
    ['only level4', {}, Post('x')],
  ])('is refused at start where nothing is kept: %s', async (_, more, bind) => {
    class Wrong {
      page(): object {
        return {};
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Wrong.prototype, 'page')!;
    Degrade({ warm: () => [], ...more })(Wrong.prototype, 'page', descriptor);
    bind(Wrong.prototype, 'page', descriptor);
    Controller()(Wrong);
    await expect(startLimited([Wrong], { clock })).rejects.toThrow(/@Degrade on Wrong\.page\.warm/);
  });
});

it('a warm-up is done when Redis has all of it, however fast answers come', async () => {
  @Controller()
  class Many {
    @Get(':id')
    @Degrade({
      warm: () =>
        Array.from({ length: 1000 }, (_, id) => ({ params: { id }, load: () => ({ id }) })),
    })
    one(): never {
      throw new Error('down');
    }
  }
  const redis = await startRedis();
  const app = await startLimited([Many], {
    store: { type: 'redis', url: redis.url },
    service: 'shop',
  });
  const client = new Redis(redis.adminUrl);
  try {
    const degradation = app.app.get(Degradation);
    const [report] = await until(async () => {
      const reports = await degradation.warm();
      return reports[0]!.failed === 0 ? reports : undefined;
    });
    expect(report!.warmed).toBe(1000);
    expect(await client.keys('weir:answer:*')).toHaveLength(1000);
  } finally {
    client.disconnect();
    await app.close();
  }
});
