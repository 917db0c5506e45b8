import { Controller, Get, Inject, Module } from '@nestjs/common';
import { HealthCheckService, TerminusModule, type HealthCheckResult } from '@nestjs/terminus';
import { Test } from '@nestjs/testing';
import { RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { RateLimitHealthIndicator } from 'nestjs-weir/terminus';
import { RateLimitMonitor } from '../../lib/observability/monitor.js';
import { Sources, type SourcesDeps } from '../../lib/observability/sources.js';
import { startLine } from '../../lib/observability/start-line.js';
import { type HealthDetails } from '../../lib/observability/state.js';

@Controller('health')
class HealthController {
  constructor(
    @Inject(HealthCheckService) private readonly health: HealthCheckService,
    @Inject(RateLimitHealthIndicator) private readonly weir: RateLimitHealthIndicator,
  ) {}

  @Get()
  check(strict = false): Promise<HealthCheckResult> {
    return this.health.check([() => this.weir.check('weir', { strict })]);
  }
}

@Module({
  imports: [TerminusModule.forRoot({ logger: false })],
  controllers: [HealthController],
  providers: [RateLimitHealthIndicator],
})
class HealthModule {}

async function started(options: RateLimitModuleInput = {}) {
  const imports = [RateLimitModule.forRoot(options), HealthModule];
  const module = await Test.createTestingModule({ imports }).compile();
  module.useLogger(false);
  await module.init();
  return module;
}

const WELL: HealthDetails = {
  ...{ store: 'up', answering: true, revision: 42, offlineApps: [], degraded: [], firing: 0 },
};

describe('RateLimitHealthIndicator', () => {
  it('is up, with what is known here', async () => {
    const module = await started({ policies: { api: { rate: '1/s' } } });
    const { status, details } = await module.get(HealthController).check();
    expect(status).toBe('ok');
    expect(details.weir).toEqual({
      ...{ status: 'up', store: 'memory', answering: true, revision: expect.any(Number) as number },
      ...{ offlineApps: [], degraded: [], firing: 0 },
    });
    await module.close();
  });

  it('is degraded but not down while the store is away, unless it is to be strict', async () => {
    const module = await started();
    const monitor = module.get(RateLimitMonitor);
    const away: HealthDetails = { ...WELL, store: 'away', offlineApps: ['shop'], firing: 1 };
    monitor.health = () => away;
    const controller = module.get(HealthController);
    const { status, details } = await controller.check();
    expect(status).toBe('degraded');
    expect(details.weir).toMatchObject({
      status: 'degraded',
      store: 'away',
      offlineApps: ['shop'],
    });
    await expect(controller.check(true)).rejects.toMatchObject({ status: 503 });
    await module.close();
  });

  it('says so where terminus knows no state in between', async () => {
    const module = await started();
    module.get(RateLimitMonitor).health = () => ({ ...WELL, store: 'away' });
    const indicator = module.get(RateLimitHealthIndicator);
    const older = {
      check: (key: string) => ({ up: (data: object) => ({ [key]: { status: 'up', ...data } }) }),
    };
    Object.assign(indicator, { service: older });
    expect(indicator.check()).toMatchObject({ weir: { status: 'up', impaired: true } });
    await module.close();
  });

  it('is up without a monitor, and says what is missing without the modules', async () => {
    const module = await started({ monitor: false });
    expect(module.get(RateLimitHealthIndicator).check('limits')).toEqual({
      limits: { status: 'up', monitor: 'off' },
    });
    await module.close();
    const alone = (...imports: NonNullable<Parameters<typeof Module>[0]['imports']>) =>
      Test.createTestingModule({ imports, providers: [RateLimitHealthIndicator] })
        .compile()
        .then((made) => made.init());
    await expect(alone()).rejects.toThrow('RateLimitModule');
    await expect(alone(RateLimitModule.forRoot())).rejects.toThrow('needs TerminusModule');
  });

  it('asks nothing of the store', async () => {
    const module = await started();
    const cpu = process.cpuUsage();
    for (let check = 0; check < 200; check++) module.get(RateLimitHealthIndicator).check();
    const { user, system } = process.cpuUsage(cpu);
    expect((user + system) / 200).toBeLessThan(1000);
    await module.close();
  });
});

describe('the line at the start', () => {
  it('says which library, store, node and configuration', () => {
    const facts = { version: '0.1.0', nodeId: 'api-3', nodes: 12, revision: 42, policies: 14 };
    expect(
      startLine({
        ...{ ...facts, apps: 4, dashboard: '/api/ops/limits/' },
        store: 'redis 7.0.15 at 127.0.0.1:6379 (prefix weir)',
      }),
    ).toBe(
      'weir 0.1.0: redis 7.0.15 at 127.0.0.1:6379 (prefix weir), node api-3 of 12, revision 42, ' +
        '14 policies, 4 apps, dashboard /api/ops/limits/',
    );
    // Nobody has been counted yet.
    expect(
      startLine({ ...facts, nodes: 1, apps: 0, store: 'redis at h:6379 (prefix weir)' }),
    ).toContain('(prefix weir), node api-3, revision');
    expect(
      startLine({ ...facts, nodes: 1, revision: 0, policies: 1, apps: 0, store: undefined }),
    ).toBe('weir 0.1.0: store in memory, this process only, node api-3, 1 policy');
  });

  it('does not look like a success while Redis has not answered', async () => {
    const told = (ready: () => Promise<void>) => {
      const info = () => ready().then(() => 'redis_version:7.0.15');
      const on = () => () => {};
      const redis = { client: { info, options: { host: 'h', port: 1 } }, prefix: 'shop' };
      return new Sources({
        limiter: { redis, ready, on },
      } as unknown as SourcesDeps).describeStore();
    };
    expect(await told(() => Promise.resolve())).toBe('redis 7.0.15 at h:1 (prefix shop)');
    expect(await told(() => Promise.reject(new Error('away')))).toBe(
      'redis at h:1 (prefix shop), not reachable yet',
    );
  });

  it('is one line of the log, once the application is there', async () => {
    const lines: string[] = [];
    const imports = [RateLimitModule.forRoot({ nodeId: 'n1', policies: { api: { rate: '1/s' } } })];
    const module = await Test.createTestingModule({ imports }).compile();
    module.useLogger({ log: (text: string) => lines.push(text), error: () => {}, warn: () => {} });
    await module.init();
    await new Promise(setImmediate);
    const told = lines.filter((text) => text.startsWith('weir '));
    expect(told).toEqual([
      expect.stringMatching(/^weir \S+: store in memory, this process only, node n1, .*1 policy$/),
    ]);
    await module.close();
  });
});
