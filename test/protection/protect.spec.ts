import { Controller, Get, Injectable, Module, Param, Scope, type Type } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import {
  currentRun,
  Protect,
  Protection,
  RateLimiter,
  RateLimitModule,
  type Failure,
  type RateLimitModuleInput,
  type RunContext,
} from 'nestjs-weir';
import { ManualClock, settle } from '../support/manual-clock.js';
import { startHttp } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

interface Context {
  readonly clock: ManualClock;
  readonly protection: Protection;
  readonly limiter: RateLimiter;
  get<T>(type: Type<T> | string): T;
  resolve<T>(type: Type<T>): Promise<T>;
  close(): Promise<void>;
}

const started: Context[] = [];

async function start(
  providers: NonNullable<Parameters<typeof Module>[0]['providers']>,
  options: RateLimitModuleInput = {},
): Promise<Context> {
  const clock = new ManualClock();
  class AppModule {}
  Module({ imports: [RateLimitModule.forRoot({ clock, ...options })], providers })(AppModule);
  const app = await NestFactory.createApplicationContext(AppModule, {
    logger: false,
    abortOnError: false,
  });
  const context: Context = {
    clock,
    protection: app.get(Protection),
    limiter: app.get(RateLimiter),
    get: <T>(type: Type<T> | string) => app.get<T>(type),
    resolve: (type) => app.resolve(type),
    close: () => app.close(),
  };
  started.push(context);
  return context;
}

afterEach(async () => {
  for (const one of started.splice(0)) await one.close();
});

const hang = (): Promise<never> => new Promise(() => {});

@Injectable()
class Products {
  calls = 0;

  @Protect('db')
  async find(id: number): Promise<string> {
    this.calls++;
    return Promise.resolve(`product ${id}`);
  }

  @Protect('db', { call: (sql: string, signal?: AbortSignal) => ({ label: sql, signal }) })
  query(_sql: string, _signal?: AbortSignal): Promise<string> {
    return hang();
  }

  @Protect('db')
  context(): Promise<RunContext | undefined> {
    return Promise.resolve(currentRun());
  }
}

describe('@Protect', () => {
  it('protects a method as the options of the module say', async () => {
    const { clock, protection, get } = await start([Products], { protection: { db: 'database' } });
    const products = get(Products);
    expect(await products.find(7)).toBe('product 7');
    const ended = products.query('SELECT 1').catch((error: unknown) => error);
    await clock.advanceAsync(210);
    expect(await ended).toMatchObject({ code: 'DEADLINE_EXCEEDED', resource: 'db' });
    expect(protection.stats().db).toMatchObject({ calls: 2, timedOut: 1 });
    protection.switchBreaker('db', 'forced');
    await expect(products.find(7)).rejects.toMatchObject({ code: 'BREAKER_OPEN' });
    expect(products.calls).toBe(1);
  });

  it('lets arguments say more about a call', async () => {
    const { get } = await start([Products], { protection: { db: {} } });
    const controller = new AbortController();
    const ended = get(Products).query('SELECT 1', controller.signal);
    controller.abort('gone');
    await expect(ended).rejects.toBe('gone');
  });

  it('rejects if what is said about a call cannot be made', async () => {
    @Injectable()
    class Broken {
      @Protect('db', { call: (sql: string) => ({ label: sql.trim() }) })
      query(_sql: string): Promise<void> {
        return Promise.resolve();
      }
    }
    const { get, protection } = await start([Broken], { protection: { db: {} } });
    await expect(get(Broken).query(5 as never)).rejects.toThrow(TypeError);
    expect(protection.stats().db!.calls).toBe(0);
  });

  it('answers by a method of the same object, or by a function, where the call fails', async () => {
    @Injectable()
    class Catalog {
      readonly known = new Map([[1, 'kettle']]);

      @Protect('db', { fallback: 'cached' })
      find(id: number): Promise<string | undefined> {
        return Promise.reject(new Error(`no table for ${id}`));
      }

      cached({ error }: Failure, id: number): string {
        return `${this.known.get(id)}, as ${String(error)}`;
      }

      @Protect('db', {
        call: (id: number) => ({ label: `price ${id}` }),
        fallback(this: Catalog, { resource }: Failure, id: number) {
          return `${this.known.size} known, not price ${id} of ${resource}`;
        },
      })
      price(_id: number): Promise<string> {
        return hang();
      }
    }
    const { get, protection, clock } = await start([Catalog], { protection: { db: 'database' } });
    const catalog = get(Catalog);
    expect(await catalog.find(1)).toBe('kettle, as Error: no table for 1');
    const price = catalog.price(2);
    await clock.advanceAsync(202);
    expect(await price).toBe('1 known, not price 2 of db');
    expect(protection.stats().db).toMatchObject({ fallbacks: 2, failed: 1, timedOut: 1 });
  });

  it('is told at once of a fallback that is not there', () => {
    const descriptor = Object.getOwnPropertyDescriptor(Products.prototype, 'context')!;
    const protect = (fallback: unknown) =>
      Protect('db', { fallback: fallback as string })(Products.prototype, 'context', descriptor);
    expect(() => protect('cached')).toThrow(
      `@Protect('db').fallback: expected a function, or the name of a method of Products, got "cached"`,
    );
    expect(() => protect(5)).toThrow("@Protect('db').fallback");
  });

  it('reaches providers of modules that are loaded later', async () => {
    @Injectable()
    class Late {
      @Protect('late', { deadline: 40 })
      run(): Promise<RunContext> {
        return Promise.resolve(currentRun()!);
      }
    }
    @Module({ providers: [Late] })
    class LateModule {}
    const { get } = await start([]);
    const loaded = await get(LazyModuleLoader).load(() => LateModule);
    expect((await loaded.get(Late).run()).remainingMs).toBe(40);
  });

  it('shows the method its own run, until it waits', async () => {
    const { get } = await start([Products], { protection: { db: { deadline: 70 } } });
    expect((await get(Products).context())!.remainingMs).toBe(70);
    expect(currentRun()).toBeUndefined();
  });

  it('has options of its own, on which those of the module are laid', async () => {
    @Injectable()
    class Mails {
      @Protect('mail', { deadline: 50, bulkhead: { maxInFlight: 1, maxQueue: 0 } })
      send(): Promise<RunContext> {
        return Promise.resolve(currentRun()!);
      }
    }
    const alone = await start([Mails]);
    expect((await alone.get(Mails).send()).remainingMs).toBe(50);
    const laidOver = await start([Mails], { protection: { mail: { deadline: 80 } } });
    const both = await Promise.allSettled([laidOver.get(Mails).send(), laidOver.get(Mails).send()]);
    expect(both[0]).toMatchObject({ value: { remainingMs: 80 } });
    expect(both[1]).toMatchObject({ reason: { code: 'BULKHEAD_REJECTED' } });
  });

  it('reaches providers of every scope and of factories, and subclasses', async () => {
    @Injectable({ scope: Scope.TRANSIENT })
    class Transient extends Products {}
    @Injectable({ scope: Scope.REQUEST })
    class OfRequest extends Products {}
    const made = { provide: 'made', useFactory: () => new Products() };
    const value = { provide: 'value', useValue: new Products() };
    const { get, resolve, protection } = await start([Transient, OfRequest, made, value], {
      protection: { db: {} },
    });
    const all = [await resolve(Transient), await resolve(OfRequest), get<Products>('made')];
    for (const one of [...all, get<Products>('value')]) expect(await one.find(1)).toBe('product 1');
    expect(protection.stats().db!.calls).toBe(4);
  });

  it('keeps applications apart that share a class', async () => {
    const [a, b] = [
      await start([Products], { protection: { db: {} } }),
      await start([Products], { protection: { db: {} } }),
    ];
    await a.get(Products).find(1);
    await a.get(Products).find(1);
    await b.get(Products).find(1);
    expect([a.protection.stats().db!.calls, b.protection.stats().db!.calls]).toEqual([2, 1]);
  });

  it('says so if there is no application', async () => {
    await expect(new Products().find(1)).rejects.toMatchObject({
      code: 'PROTECTION_MISSING',
      message: expect.stringContaining("@Protect('db') on Products.find") as string,
    });
  });

  it('leaves other decorators of the method their marks', async () => {
    @Controller()
    class ProductController {
      @Protect('db')
      @Get('products/:id')
      find(@Param('id') id: string): Promise<string> {
        return Promise.resolve(`product ${id}`);
      }
    }
    const http = await startHttp('express', {
      imports: [RateLimitModule.forRoot({ protection: { db: {} } })],
      controllers: [ProductController],
    });
    try {
      expect(await (await http.get('/products/7')).text()).toBe('product 7');
      expect(http.app.get(Protection).stats().db!.calls).toBe(1);
    } finally {
      await http.close();
    }
    expect(ProductController.prototype.find.name).toBe('find');
  });
});

describe('at the start', () => {
  it('a resource that nobody describes is an error', async () => {
    await expect(start([Products])).rejects.toMatchObject({
      code: 'UNKNOWN_RESOURCE',
      message:
        '@Protect on Products.find: unknown resource "db"; describe it: ' +
        "forRoot({ protection: { db: 'database' } }); there is (none)",
    });
  });

  it('so are options that cannot work, and a rate without its policy', async () => {
    await expect(start([], { protection: { db: { deadline: -1 } } })).rejects.toMatchObject({
      field: 'protection.db.deadline',
    });
    await expect(start([], { protection: 5 as never })).rejects.toMatchObject({
      field: 'protection',
    });
    await expect(start([], { protection: { db: { rate: 'reads' } } })).rejects.toMatchObject({
      field: 'protection.db.rate',
    });
  });

  it('so are two methods that say different things of one resource', async () => {
    @Injectable()
    class Mails {
      @Protect('mail', { deadline: 50 })
      a(): Promise<void> {
        return Promise.resolve();
      }

      @Protect('mail', { deadline: 60 })
      b(): Promise<void> {
        return Promise.resolve();
      }
    }
    await expect(start([Mails])).rejects.toMatchObject({ field: "@Protect('mail')" });
  });

  it('@Protect itself wants a name', () => {
    expect(() => Protect('')).toThrow('@Protect: expected the name of a resource');
  });
});

/** E-18: at most 1,000 calls a second for each product, by the first argument. */
@Injectable()
class Catalog {
  @Protect('catalog', { rate: { policy: 'hot-sku', key: { arg: 0 } }, fallback: 'cached' })
  async getProductDetail(id: string): Promise<string> {
    return Promise.resolve(`detail of ${id}`);
  }

  cached(_failure: Failure, id: string): string {
    return `cached ${id}`;
  }
}

describe('a hot argument (E-17, E-18)', () => {
  it('is limited by itself, and products that few ask for need no bucket', async () => {
    const { get, limiter } = await start([Catalog], {
      policies: { 'hot-sku': { rate: 1000, hot: true } },
    });
    const catalog = get(Catalog);
    const answers: string[] = [];
    for (let n = 0; n < 1200; n++) answers.push(await catalog.getProductDetail('sku-1'));
    const served = answers.filter((answer) => answer === 'detail of sku-1');
    expect([served.length, answers.length - served.length]).toEqual([1100, 100]);
    expect(await catalog.getProductDetail('sku-2')).toBe('detail of sku-2');
    expect(limiter.stats().keys).toBe(1);
    expect(limiter.hotValues('hot-sku', 1)).toEqual([{ key: 'sku-1', perPeriod: 1200 }]);
  });
});

describe('the log of an application', () => {
  it('tells of slow calls, of slots that are held and of breakers', async () => {
    const warnings = new Warnings();
    const { protection, clock } = await start([], {
      protection: { db: { slow: {}, bulkhead: {}, breaker: { minimumCalls: 1 } } },
      policies: { reads: { rate: '1/s' } },
    });
    warnings.start();
    const call = protection.run(
      'db',
      () => new Promise((_, reject) => clock.after(2500, () => reject(new Error('down')))),
      { label: 'SELECT SLEEP(2.5)' },
    );
    const ended = call.catch(() => undefined);
    await clock.advanceAsync(2600);
    await ended;
    await settle();
    warnings.stop();
    expect(warnings.texts).toEqual([
      expect.stringMatching(/^A slot of "db" has been held for 200\d ms: "SELECT SLEEP\(2.5\)"$/),
      `Slow call of "db", 2500 ms: "SELECT SLEEP(2.5)"`,
      'Breaker of "db": closed → open (1 failed, 1 slow of 1)',
    ]);
  });
});
