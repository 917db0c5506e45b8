import { Get, NotFoundException } from '@nestjs/common';
import {
  BreakerOpenError,
  BulkheadRejectedError,
  Degradation,
  ProtectionRejectedError,
  RateLimiter,
  RateLimitModule,
  type RecoveryStats,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { moduleOptions, productsController } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

// Each is a fault that the way back is known for, seen from a route.
describe('the way back of a route', () => {
  let app: HttpApp;
  let stage: Stage;
  let degradation: Degradation;

  beforeEach(async () => {
    stage = new Stage(new ManualClock());
    const imports = [RateLimitModule.forRoot(moduleOptions(stage))];
    const controllers = [productsController(stage, (offer) => Get(offer))];
    app = await startHttp('express', { imports, controllers });
    degradation = app.app.get(Degradation);
    await app.app.get(RateLimiter).acquire({ policy: 'closed', key: 'global' });
  });

  afterEach(() => app.close());

  const ask = async (path: string): Promise<string> => {
    const { status, headers } = await app.get(path);
    return `${status} ${headers.get('x-degraded') ?? 'as it is'}`;
  };
  const asks = async (count: number, path: string): Promise<void> => {
    for (let i = 0; i < count; i++) await app.get(path);
  };
  const statsOf = (resource: string): RecoveryStats =>
    degradation.stats().resources.find((one) => one.resource === resource)!;

  it.each([
    new BulkheadRejectedError('db', 'full', 10, 0),
    new BulkheadRejectedError('db', 'waited', 10, 100),
    new ProtectionRejectedError('db', 'limited', 100),
  ])(
    'pool-wait timeouts opened the breaker: $reason is answered, and no failure',
    async (error) => {
      stage.throws(error);
      await asks(40, '/level4');
      expect(await ask('/level4')).toBe('200 level=4; reason=open');
      expect(statsOf('Products.level4')).toMatchObject({ phase: 'normal', percent: 100 });
    },
  );

  it('pool-wait timeouts opened the breaker: a probe that finds no slot says nothing', async () => {
    stage.throws(new Error('down'));
    await asks(20, '/level4');
    stage.clock.advance(12_000);
    stage.throws(new BulkheadRejectedError('db', 'full', 10, 0));
    expect(await ask('/level4')).toBe('200 level=4; reason=open');
    expect(statsOf('Products.level4')).toMatchObject({
      phase: 'probing',
      probes: { begun: 1, neutral: 1, failed: 0 },
    });
  });

  it('a breaker that is open is trouble', async () => {
    stage.throws(new BreakerOpenError('db', 1000));
    await asks(20, '/level4');
    expect(await ask('/level4')).toBe('200 level=4; reason=degraded');
  });

  it('4xx path forgets to report: a probe that meets one frees its permit, and the next comes soon', async () => {
    stage.throws(new Error('down'));
    await asks(20, '/level4');
    stage.clock.advance(12_000);
    stage.throws(new NotFoundException());
    expect(await ask('/level4')).toBe('404 as it is');
    expect(statsOf('Products.level4').probes).toMatchObject({ begun: 1, neutral: 1 });
    stage.works();
    stage.clock.advance(2000);
    expect(await ask('/level4')).toBe('200 as it is');
    expect(statsOf('Products.level4').probes).toMatchObject({ begun: 2, succeeded: 1 });
  });

  it('all traffic admitted in half-open: one request probes, the others are answered at once', async () => {
    stage.throws(new Error('down'));
    await asks(20, '/level4');
    stage.clock.advance(12_000);
    const before = stage.calls;
    stage.hangs();
    const entered = stage.entered();
    const probe = ask('/level4');
    await entered;
    const others = await Promise.all(Array.from({ length: 20 }, () => ask('/level4')));
    expect(new Set(others)).toEqual(new Set(['200 level=4; reason=degraded']));
    expect(stage.calls).toBe(before + 1);
    stage.finish();
    expect(await probe).toBe('200 as it is');
  });

  it('what an operator has pinned holds for those over their limit as well', async () => {
    await ask('/all');
    stage.isLimited = true;
    degradation.force('Products.all', 3);
    expect(await ask('/all')).toMatch(/^200 level=3; /);
  });

  it('words are an answer of level 4, and counted as one', async () => {
    stage.throws(new Error('down'));
    expect(await ask('/words')).toBe('503 level=4; reason=failed');
    const { answers, unanswered } = degradation.stats().fallbacks;
    expect([answers[4].failed, unanswered.failed]).toEqual([1, 0]);
  });
});
