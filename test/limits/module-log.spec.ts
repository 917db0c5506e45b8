import { Get } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  Degradation,
  Protection,
  RateLimiter,
  RateLimitModule,
  type DegradeModuleOptions,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { startRedis, stopAll } from '../support/index.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { until } from '../support/until.js';
import { moduleOptions, productsController, startLimited } from '../degradation/degrade-routes.js';
import { Stage } from '../degradation/degrade-stage.js';
import { type HttpApp } from '../support/nest/http-apps.js';
import { LogLines } from '../support/nest/warnings.js';

afterAll(stopAll);

const log = new LogLines();
beforeEach(() => void log.take());
afterEach(() => log.stop());

async function start(options: RateLimitModuleInput) {
  const app = await NestFactory.createApplicationContext(RateLimitModule.forRoot(options), {
    logger: false,
  });
  log.start();
  return app;
}

/** A Redis that was started anew has forgotten the configuration, which has lines of its own. */
const news = (): string[] => log.lines.filter((line) => !line.includes('revision'));

const FAST = { rate: '1000/s' } as const;

describe('the store', () => {
  it('is told of when it is lost, with what decides meanwhile, and when it is back', async () => {
    const redis = await startRedis();
    const app = await start({
      store: { type: 'redis', url: redis.url },
      policies: {
        ...{ a: FAST, b: FAST, c: FAST, d: FAST, e: FAST, f: FAST },
        login: { ...FAST, failureMode: 'closed' },
        free: { ...FAST, failureMode: 'open' },
        here: { ...FAST, scope: 'node' },
      },
    });
    try {
      const limiter = app.get(RateLimiter);
      const ask = async () => (await limiter.tryAcquire({ policy: 'a', key: 'k' })).source;
      await until(async () => (await ask()) === 'store');
      await redis.kill();
      await until(async () => (await ask()) === 'fallback' && log.lines.length > 0);
      expect(log.take()).toEqual([
        expect.stringMatching(
          /^warn The store is lost: "store unavailable: .*"\. Meanwhile decides: this process's share for "a", "b", "c", "d", "e" and 1 more \(failure mode local\); nobody for "free": all pass \(open\); nobody for "login": all are refused \(closed\)\.$/,
        ),
      ]);
      await redis.restart();
      await until(async () => (await ask()) === 'store' && news().length > 0);
      expect(news()).toEqual([
        expect.stringMatching(/^log The store is back, after [\d.]+ s: it decides again\.$/),
      ]);
    } finally {
      await app.close();
    }
  });

  it('is told of by a quota alone, and so are the apps that do without it', async () => {
    const redis = await startRedis();
    const app = await start({
      store: { type: 'redis', url: redis.url },
      quota: { apps: { shop: { guaranteed: 100 }, mail: { guaranteed: 100 } } },
      app: () => 'shop',
    });
    try {
      const limiter = app.get(RateLimiter);
      const states: string[] = [];
      limiter.on('store', ({ state }) => states.push(state));
      const ask = async () => limiter.tryAcquire({ app: 'shop' });
      await limiter.ready();
      await until(async () => {
        await ask();
        return limiter.stats().quota!.apps.shop!.mode !== 'offline';
      });
      await redis.kill();
      await until(async () => {
        await ask();
        return log.lines.length > 1;
      });
      expect(log.take()).toEqual([
        expect.stringMatching(
          /^warn The store is lost: ".*"\. Meanwhile decides: this process's share of the guarantees for the quota\.$/,
        ),
        `warn Apps "mail", "shop" are offline: decided by this process's share of the guarantee.`,
      ]);
      await redis.restart();
      await until(async () => {
        await ask();
        return news().length > 1;
      });
      expect(news()).toEqual([
        expect.stringMatching(/^log The store is back, after [\d.]+ s: it decides again\.$/),
        expect.stringMatching(/^log Apps are decided by the quota again, after [\d.]+ s\.$/),
      ]);
      expect(states).toEqual(['down', 'up']);
    } finally {
      await app.close();
    }
  });
});

it('overload is told of when it begins and when it is over', async () => {
  const clock = new ManualClock();
  const app = await start({
    clock,
    quota: { cluster: { capacity: 1000 }, apps: { shop: { guaranteed: 300, burst: 2000 } } },
    app: 'shop',
  });
  const limiter = app.get(RateLimiter);
  const run = (ms: number, perTick: number): void => {
    for (let at = 0; at < ms; at += 10) {
      for (let n = 0; n < perTick; n++) void limiter.tryAcquire({ app: 'shop' });
      clock.advance(10);
    }
  };
  run(3000, 30);
  run(5000, 1);
  expect(log.take()).toEqual([
    'warn The cluster is overloaded: all apps together ask for more than nine tenths of its capacity. Guarantees hold; what is beyond them is shared by priority.',
    expect.stringMatching(/^log The cluster's overload is over, after [\d.]+ s\.$/),
  ]);
  await app.close();
});

it('slow calls have one line a minute for each resource: how many, and the longest (V-E26)', async () => {
  const clock = new ManualClock();
  // Without alerts, which would tell of them as well.
  const resources = { db: { slow: {} }, mail: { slow: {} } };
  const app = await start({ clock, monitor: false, protection: resources });
  const protection = app.get(Protection);
  const call = async (resource: string, ms: number, label?: string): Promise<void> => {
    const work = () => new Promise<void>((resolve) => clock.after(ms, resolve));
    const ended = protection.run(resource, work, label === undefined ? {} : { label });
    await clock.advanceAsync(ms);
    await ended;
  };
  await call('db', 200, 'SELECT 0');
  expect(log.take()).toEqual([]);
  for (let n = 1; n <= 100; n++) await call('db', 200 + n, `SELECT\n${n}`);
  await call('mail', 300);
  await clock.advanceAsync(60_000);
  expect(log.take()).toEqual([
    String.raw`warn Slow call of "db", 201 ms: "SELECT\n1"`,
    'warn Slow call of "mail", 300 ms',
    String.raw`warn 99 more slow calls of "db" within a minute, the longest 300 ms: "SELECT\n100"`,
  ]);
  await clock.advanceAsync(120_000);
  await call('db', 250, 'SELECT 1');
  await call('db', 400, 'SELECT 2');
  await app.close();
  expect(log.take()).toEqual([
    `warn Slow call of "db", 250 ms: "SELECT 1"`,
    `warn 1 more slow call of "db" within a minute, 400 ms: "SELECT 2"`,
  ]);
});

it('slots that are held and breakers that flap have a line a minute, too', async () => {
  const clock = new ManualClock();
  const app = await start({
    clock,
    protection: { db: { bulkhead: {}, breaker: { minimumCalls: 1, openFor: '1s', successes: 1 } } },
  });
  const protection = app.get(Protection);
  const failing = () => protection.run('db', () => Promise.reject(new Error('down')));
  await expect(failing()).rejects.toThrow('down');
  for (let n = 0; n < 10; n++) {
    await clock.advanceAsync(2000);
    await expect(failing()).rejects.toThrow('down');
  }
  expect(log.take()).toEqual([
    'warn Breaker of "db": closed → open (1 failed, 0 slow of 1)',
    'warn Breaker of "db": open → half-open',
    'warn Breaker of "db": half-open → open',
  ]);
  protection.switchBreaker('db', 'disabled');
  await clock.advanceAsync(60_000);
  log.take();
  const ends: (() => void)[] = [];
  const hang = () => new Promise<void>((resolve) => ends.push(resolve));
  const held = Array.from({ length: 50 }, () => protection.run('db', hang));
  await clock.advanceAsync(2010);
  await clock.advanceAsync(60_000);
  for (const end of ends) end();
  await Promise.all(held);
  await app.close();
  expect(log.take()).toEqual([
    expect.stringMatching(/^warn A slot of "db" has been held for 200\d ms$/),
    expect.stringMatching(/^warn 49 more slots of "db" held within a minute, for 200\d ms$/),
  ]);
});

describe('behind @Degrade', () => {
  let app: HttpApp;
  let stage: Stage;
  const open = async (degradation: Partial<DegradeModuleOptions> = {}): Promise<void> => {
    stage = new Stage(new ManualClock());
    const Products = productsController(stage, (offer) => Get(offer));
    app = await startLimited([Products], moduleOptions(stage, { degradation }));
    log.start();
  };
  afterEach(() => app.close());

  it('errors of handlers are told of: the first with its stack, the others by the minute', async () => {
    await open();
    stage.throws(new Error('no such\ntable'));
    for (let n = 0; n < 10; n++) await app.get('/level4');
    expect(log.take()).toEqual([
      String.raw`error Products.level4 failed, and its caller got another answer: "Error" "no such\ntable"`,
    ]);
    expect(log.stacks.splice(0)).toEqual([expect.stringMatching(/^ +at .*module-log\.spec/)]);
    await app.get('/words');
    expect(log.take()).toEqual([expect.stringMatching(/^error Products\.words failed/)]);
    stage.clock.advance(60_000);
    expect(log.take()).toContain(
      String.raw`error Products.level4 failed 9 times more within a minute, the last one: "Error" "no such\ntable"`,
    );
  });

  it('answers that are not kept because of credentials are counted, and told of by the minute', async () => {
    await open();
    for (let n = 0; n < 3; n++) await app.get('/level1', { authorization: 'Bearer secret' });
    const refused = () => app.app.get(Degradation).stats().caches.refused.credentials;
    expect(refused()).toBe(3);
    const text =
      'Products.level1: answers are not kept for levels 1 and 2. Requests carry credentials, and nobody knows ' +
      "whose: name the caller with 'user' of the module or 'principal' of @Degrade, or say 'shared: true' if " +
      'the answer is the same for all';
    expect(log.take()).toEqual([`warn ${text}.`]);
    stage.clock.advance(60_000);
    expect(log.take()).toEqual([`warn ${text} (2 times within a minute).`]);
    // Without credentials it is kept, and where nothing is to be kept there is nothing to tell.
    await app.get('/level1');
    await app.get('/level4', { authorization: 'Bearer secret' });
    expect([refused(), log.take()]).toEqual([3, []]);
  });

  it('errors of fallbacks are told of as well', async () => {
    stage = new Stage(new ManualClock());
    const level4 = (): never => {
      throw new Error('no default');
    };
    const Products = productsController(stage, (offer) => Get(offer), { level4 });
    app = await startLimited([Products], moduleOptions(stage));
    log.start();
    stage.throws(new Error('down'));
    expect((await app.get('/nothing')).status).toBe(500);
    expect(log.take()).toContain(
      'error Level 4 of "Products.nothing" failed, and its caller got another answer: "Error" "no default"',
    );
  });

  it('errors that callers are told of are the application’s own to log', async () => {
    await open();
    stage.throws(new Error('down'));
    await app.get('/nothing');
    expect(log.take().filter((line) => line.includes('another answer'))).toEqual([]);
  });

  it('errors that come after the answer are told of as well', async () => {
    await open();
    stage.hangs();
    const entered = stage.entered();
    const answer = app.get('/level4');
    await entered;
    stage.clock.advance(1000);
    expect((await answer).status).toBe(200);
    stage.finish(Promise.reject(new TypeError('too late')));
    await settle();
    expect(log.take()).toEqual([
      'error Products.level4 failed, and its caller got another answer: "TypeError" "too late"',
    ]);
  });

  it('a resource is told of as it falls and comes back, a line for each step', async () => {
    await open();
    stage.throws(new Error('down'));
    for (let n = 0; n < 20; n++) await app.get('/level4');
    const step = async (seconds: number): Promise<void> => {
      for (let s = 0; s < seconds; s++) {
        stage.clock.advance(1000);
        for (let n = 0; n < 3; n++) await app.get('/level4');
      }
    };
    // Probes that fail every ten seconds are no news.
    await step(45);
    // Alerts tell the same from above, by rules of their own.
    const isOwn = (line: string): boolean =>
      !line.includes('failed,') && !/^(error critical|warn warning|log info) /.test(line);
    const told = (): string[] => log.take().filter(isOwn);
    expect(told()).toEqual([
      'warn "Products.level4" is degraded, by errors: callers get fallbacks until it answers probes.',
    ]);
    stage.works();
    await step(200);
    expect(told().filter((line) => !line.startsWith('error'))).toEqual([
      'log "Products.level4" answers probes: 10 % of its traffic now, more by stages.',
      expect.stringMatching(/^log "Products\.level4" is back to normal, after \d+ s\.$/),
    ]);
  });

  it('what operators do is told of', async () => {
    await open();
    const degradation = app.app.get(Degradation);
    degradation.observe('Products.all');
    degradation.resume('Products.all');
    degradation.force('Products.all', 2);
    degradation.resume('Products.all');
    degradation.disable('Products.level1');
    degradation.resume('Products.level1');
    expect(log.take()).toEqual([
      'log "Products.all" is watched. (observed only: callers do not notice)',
      'warn "Products.all" is degraded, by an operator: callers get fallbacks until it answers probes.',
      'log "Products.all" is tried out again, by probes.',
      'warn "Products.level1" has no fallbacks any more: an operator has disabled them.',
      'log "Products.level1" is left to itself again.',
    ]);
    stage.clock.advance(60_000);
    expect(log.take()).toEqual(['log "Products.all" is not only watched any more.']);
  });
});
