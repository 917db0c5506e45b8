import { Controller, Get } from '@nestjs/common';
import {
  Overload,
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type LoadProbe,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

@Controller()
class Search {
  @Get('search')
  @RateLimit('search')
  search(): string {
    return 'found';
  }
}

describe('policies that follow the load of their process', () => {
  let app: HttpApp;
  let clock: ManualClock;
  const load: Record<string, number> = {};
  const probe = (name: string): LoadProbe => ({ name, sample: () => load[name] });

  const start = async (overload: RateLimitModuleInput['overload'], adaptive = true) => {
    clock = new ManualClock();
    Object.assign(load, { cpu: 0, loop: 0, memory: 0, inFlight: 0 });
    const policies = {
      search: { rate: '100/h', scope: 'node', adaptive, key: 'global' },
    } as const;
    const headers = { legacy: true };
    app = await startHttp('express', {
      imports: [RateLimitModule.forRoot({ clock, policies, overload, headers })],
      controllers: [Search],
    });
  };

  afterEach(() => app.close());

  const limit = async (): Promise<string | null> =>
    (await app.get('/search')).headers.get('x-ratelimit-limit');
  const PROBES = ['cpu', 'loop', 'memory', 'inFlight'].map(probe);

  it('tell callers what is left of their limit, and have it back when the load is over', async () => {
    await start({ enabled: true, probes: PROBES });
    const overload = app.app.get(Overload);
    expect(await limit()).toBe('100');
    Object.assign(load, { cpu: 1, memory: 1, inFlight: 1000 });
    clock.advance(5000);
    expect(await limit()).toBe('50');
    expect(overload.stats()).toMatchObject({ factor: 0.5, load: { score: 1, cpu: 1 }, stale: 0 });
    Object.assign(load, { cpu: 0, memory: 0, inFlight: 0 });
    clock.advance(12_000);
    expect(await limit()).toBe('100');
  });

  it('are left alone without overload, and where it is switched off they have all again', async () => {
    await start({ enabled: true, probes: PROBES });
    Object.assign(load, { cpu: 1, memory: 1, inFlight: 1000 });
    clock.advance(5000);
    expect(await limit()).toBe('50');
    app.app.get(Overload).prepare({ enabled: false })();
    expect(await limit()).toBe('100');
    expect(app.app.get(Overload).stats()).toMatchObject({ factor: 1, load: undefined });
  });

  it('are measured for, or for whoever listens; else nothing is', async () => {
    await start({ enabled: true, probes: PROBES }, false);
    const overload = app.app.get(Overload);
    clock.advance(2000);
    expect(overload.stats().load).toBeUndefined();
    const told: unknown[] = [];
    const stop = overload.on('load', (sample) => told.push(sample));
    clock.advance(2000);
    stop();
    clock.advance(2000);
    expect(told).toHaveLength(4);
    expect(overload.stats().load).toBeUndefined();
    expect(app.app.get(RateLimiter).isAdaptive).toBe(false);
  });
});
