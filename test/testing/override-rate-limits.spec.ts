import { Controller, Get, Module, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { RateLimit, RateLimitModule } from 'nestjs-weir';
import { ManualClock, overrideRateLimits, type RateLimitOverrides } from 'nestjs-weir/testing';

@Controller()
class ReportsController {
  @Get()
  @RateLimit('reports')
  report(): string {
    return 'ok';
  }

  @Get('feature')
  @RateLimit('feature')
  feature(): string {
    return 'ok';
  }

  @Get('inline')
  @RateLimit({ rate: '2/min' })
  inline(): string {
    return 'ok';
  }

  @Get('untouched')
  @RateLimit('untouched')
  untouched(): string {
    return 'ok';
  }
}

/** As it runs in production: on a Redis that is not there in tests. */
@Module({
  imports: [
    RateLimitModule.forRootAsync({
      useFactory: () => ({
        policies: {
          reports: { rate: '2/min', failureMode: 'closed' },
          untouched: { rate: '2/min' },
        },
        store: { type: 'redis', url: 'redis://127.0.0.1:1' },
      }),
    }),
    RateLimitModule.forFeature({ feature: { rate: '2/min' } }),
  ],
  controllers: [ReportsController],
})
class AppModule {}

describe('overrideRateLimits', () => {
  let app: INestApplication;
  const start = async (
    overrides?: RateLimitOverrides,
  ): Promise<(path?: string) => Promise<Response>> => {
    const builder = Test.createTestingModule({ imports: [AppModule] });
    const testing = await overrideRateLimits(builder, overrides).compile();
    app = testing.createNestApplication({ logger: false });
    await app.listen(0, '127.0.0.1');
    const url = await app.getUrl();
    return (path = '') => fetch(`${url}/${path}`);
  };
  afterEach(() => app.close());

  it('puts limits into memory and their time into the hands of the test', async () => {
    const clock = new ManualClock();
    const get = await start({ clock });
    const statuses = [(await get()).status, (await get()).status, (await get()).status];
    expect(statuses).toEqual([200, 200, 429]);
    clock.advance(30_000);
    expect([(await get()).status, (await get()).status]).toEqual([200, 429]);
  });

  it('begins anew with every application, and lets no token come back by itself', async () => {
    const get = await start();
    const first = await get();
    expect([first.status, first.headers.get('ratelimit')]).toEqual([200, '"reports";r=1;t=30']);
  });

  it('overrides fields of policies, wherever they are defined', async () => {
    const once = { burst: 1 };
    const get = await start({
      policies: { reports: once, feature: once, 'ReportsController.inline': once },
    });
    for (const path of ['', 'feature', 'inline']) {
      expect([(await get(path)).status, (await get(path)).status]).toEqual([200, 429]);
    }
    const rest = await Promise.all([get('untouched'), get('untouched')]);
    expect(rest.map(({ status }) => status)).toEqual([200, 200]);
  });

  it('wants the policies that it overrides to be there', async () => {
    app = { close: () => Promise.resolve() } as INestApplication;
    await expect(start({ policies: { report: { rate: '1/min' } } })).rejects.toThrow(
      `overrideRateLimits: expected one of the policies feature, reports, untouched, got "report"; did you mean 'reports'?`,
    );
  });

  it('overrides other options as well', async () => {
    const get = await start({ headers: { draft: 'off', legacy: true } });
    const { headers } = await get();
    expect(headers.get('ratelimit')).toBeNull();
    expect(headers.get('x-ratelimit-remaining')).toBe('1');
  });
});
