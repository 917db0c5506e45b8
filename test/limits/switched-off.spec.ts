import { Controller, Get, Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  ClusterQuota,
  Degradation,
  Degrade,
  Protect,
  Protection,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { NoopRateLimiter } from 'nestjs-weir/testing';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { LogLines } from '../support/nest/warnings.js';

@Injectable()
class Stock {
  calls = 0;

  @Protect('db', { fallback: () => 'from elsewhere' })
  count(): Promise<string> {
    this.calls++;
    return this.calls > 1 ? Promise.reject(new Error('down')) : Promise.resolve('7');
  }
}

@Controller()
class Shop {
  constructor(private readonly stock: Stock) {}

  @Get('limited')
  @RateLimit('few')
  limited(): string {
    return 'ok';
  }

  @Get('quota')
  @RateLimit()
  quota(): string {
    return 'ok';
  }

  @Get('stock')
  @Degrade({ level4: 'a default' })
  count(): Promise<string> {
    return this.stock.count();
  }
}
Reflect.defineMetadata('design:paramtypes', [Stock], Shop);

/** No server listens there: a connection would fail and be logged. */
const NOWHERE = { type: 'redis', url: 'redis://127.0.0.1:1' } as const;

const OPTIONS: RateLimitModuleInput = {
  enabled: false,
  store: NOWHERE,
  service: 'shop',
  policies: { few: { rate: '1/h', key: 'global' }, early: { rate: '1/h', key: 'ip', early: true } },
  apply: ['early'],
  quota: { apps: { shop: { guaranteed: 1 } } },
  app: 'shop',
  protection: { db: { preset: 'database', bulkhead: { maxInFlight: 1, maxQueue: 0 } } },
};

describe('enabled: false', () => {
  let app: HttpApp | undefined;
  const log = new LogLines();
  const start = async (options: RateLimitModuleInput): Promise<HttpApp> => {
    log.take();
    const imports = [RateLimitModule.forRoot(options)];
    const metadata = { imports, controllers: [Shop], providers: [Stock] };
    return (app = await startHttp('express', metadata, () => log.start()));
  };
  afterEach(async () => {
    log.stop();
    await app?.close();
    app = undefined;
  });

  it('limits nothing, falls back on nothing, protects nothing, and says so once', async () => {
    const { get } = await start(OPTIONS);
    for (const path of ['/limited', '/quota']) {
      const answers = await Promise.all([1, 2, 3].map(() => get(path)));
      expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
      expect(answers[0]!.headers.get('ratelimit')).toBeNull();
    }
    expect(await (await get('/stock')).text()).toBe('7');
    // Neither @Degrade nor the fallback of @Protect stands in.
    expect((await get('/stock')).status).toBe(500);
    const told = log.take().filter((line) => line.includes('SWITCHED OFF'));
    expect(told).toEqual([
      'warn SWITCHED OFF by enabled: false: NO limit, fallback or protection holds in this process, and the store is not opened.',
    ]);
  });

  it('opens no store, also for those who ask the limiter themselves', async () => {
    const { app: nest } = await start(OPTIONS);
    const limiter = nest.get(RateLimiter);
    expect(limiter).toBeInstanceOf(NoopRateLimiter);
    await limiter.ready();
    expect([limiter.redis, limiter.stats().store]).toEqual([undefined, undefined]);
    const decisions = [1, 2, 3].map(() => limiter.tryAcquire({ policy: 'few', key: 'k' }));
    expect(decisions).toMatchObject([1, 2, 3].map(() => ({ allowed: true, remaining: 1 })));
    expect(nest.get(ClusterQuota)).toBeDefined();
    expect(nest.get(Degradation).stats().caches.process).toMatchObject({ hits: 0 });
  });

  it('leaves work to itself, but for what its own caller has asked for', async () => {
    const { app: nest } = await start(OPTIONS);
    const protection = nest.get(Protection);
    const both = [1, 2].map(() => protection.run('db', () => new Promise(setImmediate)));
    await Promise.all(both);
    expect(protection.stats().db).toMatchObject({ calls: 0, full: 0 });
    const gone = { signal: AbortSignal.abort('gone') };
    await expect(protection.run('db', () => 1, gone)).rejects.toBe('gone');
    await expect(protection.run('no', () => 1)).rejects.toThrow('unknown resource');
    const steps = [{ resource: 'db', run: () => undefined }, { run: () => 'found' }];
    expect(await protection.firstOf(steps)).toBe('found');
  });

  it('is checked like any other: what is wrong is told at the start', async () => {
    await expect(start({ ...OPTIONS, policies: {} })).rejects.toThrow('apply: expected a policy');
    await expect(start({ ...OPTIONS, enabled: 'no' as never })).rejects.toThrow('enabled');
  });
});

describe('NoopRateLimiter', () => {
  it('takes the place of the limiter in a test', async () => {
    const builder = Test.createTestingModule({
      imports: [RateLimitModule.forRoot({ policies: { few: { rate: '1/h', key: 'global' } } })],
    });
    builder.overrideProvider(RateLimiter).useValue(new NoopRateLimiter());
    const module = await builder.compile();
    const limiter = module.get(RateLimiter);
    const ask = async () => (await limiter.tryAcquire({ policy: 'few', key: 'k' })).allowed;
    expect([await ask(), await ask()]).toEqual([true, true]);
    expect(limiter.policyNames()).toEqual(['few']);
    await module.close();
  });

  it('takes its place where the application has a quota', async () => {
    const quota = { apps: { shop: { guaranteed: 1 } } };
    const imports = [RateLimitModule.forRoot({ quota, app: 'shop', apply: 'quota' })];
    const builder = Test.createTestingModule({ imports });
    builder.overrideProvider(RateLimiter).useValue(new NoopRateLimiter());
    const module = await builder.compile();
    await module.init();
    const ask = async () => (await module.get(RateLimiter).tryAcquire({ app: 'shop' })).allowed;
    expect([await ask(), await ask()]).toEqual([true, true]);
    await module.close();
  });

  it('lets everything pass, whatever it is asked', async () => {
    const limiter = new NoopRateLimiter({ policies: { few: { rate: '1/h' } } });
    const request = { policy: 'few', key: 'k', cost: 5 } as const;
    expect([limiter.allow(), limiter.allowN()]).toEqual([true, true]);
    expect(limiter.tryAcquire(request)).toMatchObject({ allowed: true, limit: 1, remaining: 1 });
    expect(await limiter.acquire([request, { app: 'shop' }])).toMatchObject({
      allowed: true,
      policy: 'few',
      decisions: [{ tier: 'policy' }, { tier: 'app', policy: 'shop' }],
    });
    expect(limiter.tryAcquire({ policy: 'unknown', key: 'k' })).toMatchObject({ allowed: true });
    limiter.refund();
    limiter.reset();
    expect(limiter.peek(request)).toMatchObject({ allowed: true });
    expect(() => limiter.define({ wrong: { rate: -1 } })).toThrow('rate');
    await limiter.close();
  });
});
