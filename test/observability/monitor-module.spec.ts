import { AsyncLocalStorage } from 'node:async_hooks';
import { once, type EventEmitter } from 'node:events';
import { Controller, Get, Res } from '@nestjs/common';
import { RateLimit, RateLimiter, RateLimitModule } from 'nestjs-weir';
import { RateLimitMonitor } from '../../lib/observability/monitor.js';
import { Test } from '@nestjs/testing';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS } from '../support/nest/http-apps.js';
import { HTTP_WIRES, startHttpWire } from '../support/nest/http-wires.js';
import { until } from '../support/until.js';
import { parseExposition, type Line } from './exposition.js';
import { pathOf, SHOP, startShop, type Denials } from './watched-app.js';

const find = (lines: readonly Line[], name: string, labels: Record<string, string> = {}) =>
  lines.find(
    (line) =>
      line.name === name &&
      Object.entries(labels).every(([label, value]) => line.labels[label] === value),
  )?.value;

describe.each(PLATFORMS)('the monitor of an application on %s', (platform) => {
  it('shows in its metrics what the features have counted', async () => {
    const { app, get, close } = await startShop(platform);
    for (const path of ['search', 'search', 'search', 'search', 'stock', 'page', 'page', 'free']) {
      await (await get(`/${path}`)).text();
    }
    const monitor = app.get(RateLimitMonitor);
    await until(
      () => find(parseExposition(monitor.text()).lines, 'weir_response_seconds_count') === 5,
    );
    const { lines, types } = parseExposition(monitor.text());
    const http = { transport: 'http' };
    expect(find(lines, 'weir_requests_total', { ...http, outcome: 'passed' })).toBe(5);
    expect(find(lines, 'weir_requests_total', { ...http, outcome: 'denied' })).toBe(1);
    expect(find(lines, 'weir_requests_total', { ...http, outcome: 'degraded' })).toBe(1);
    const { policies, quota } = app.get(RateLimiter).stats();
    for (const policy of ['search', 'page']) {
      const { allowed, denied } = policies[policy]!.bySource.local;
      const local = { policy, source: 'local' };
      expect(find(lines, 'weir_decisions_total', { ...local, outcome: 'allowed' })).toBe(allowed);
      expect(find(lines, 'weir_decisions_total', { ...local, outcome: 'denied' })).toBe(denied);
    }
    expect(find(lines, 'weir_decisions_total', { policy: 'idle' })).toBeUndefined();
    expect(find(lines, 'weir_quota_used_tokens_total', { app: 'shop' })).toBe(
      quota!.apps.shop!.used,
    );
    const degraded = lines.filter(({ name, labels }) => {
      return name === 'weir_degraded_answers_total' && labels.reason === 'limited';
    });
    expect(degraded.map(({ value }) => value).sort()).toEqual([0, 0, 0, 1]);
    const stock = { resource: 'stock' };
    expect(find(lines, 'weir_resource_calls_total', { ...stock, outcome: 'succeeded' })).toBe(1);
    expect(find(lines, 'weir_breaker_state', { ...stock, state: 'closed' })).toBe(1);
    expect(find(lines, 'weir_store_up')).toBeUndefined();
    expect(types.get('weir_resource_call_seconds')).toBe('histogram');
    await close();
  });

  it('takes the times and errors of guarded routes that were let through', async () => {
    const { app, get, close } = await startShop(platform);
    const monitor = app.get(RateLimitMonitor);
    const value = (name: string) => find(parseExposition(monitor.text()).lines, name);
    for (const path of ['news', 'search', 'broken', 'free', 'search', 'search']) {
      await (await get(`/${path}`)).text();
    }
    await until(() => value('weir_response_seconds_count') === 3);
    expect(value('weir_response_errors_total')).toBe(1);
    await close();
  });

  it('calls onDenied for each denial, in the context of its request', async () => {
    const denied: Denials = [];
    const store = new AsyncLocalStorage<string>();
    const seen: (string | undefined)[] = [];
    const monitor = {
      onDenied: ({ policy }: { policy: string }, context: Parameters<typeof pathOf>[0]) => {
        denied.push([policy, pathOf(context)]);
        seen.push(store.getStore());
        throw new Error('a listener that fails changes nothing');
      },
    };
    const { get, close } = await startShop(platform, { monitor }, [], (app) => {
      app.use((_: unknown, __: unknown, next: () => void) => store.run('request', next));
    });
    for (let request = 0; request < 5; request++) await (await get('/search')).text();
    expect((await get('/search')).status).toBe(429);
    expect(denied).toEqual([
      ['search', '/search'],
      ['search', '/search'],
      ['search', '/search'],
    ]);
    expect(seen).toEqual(['request', 'request', 'request']);
    await close();
  });
});

describe.each(HTTP_WIRES)('the monitor of an application on %s', (wire) => {
  it('takes no time of an answer that its caller did not wait for', async () => {
    const caller = new AbortController();
    let left: Promise<unknown> | undefined;

    @Controller()
    class SlowController {
      @Get('slow')
      @RateLimit({ rate: '100/s' })
      async slow(
        @Res({ passthrough: true }) response: EventEmitter & { raw?: EventEmitter },
      ): Promise<string> {
        left = once(response.raw ?? response, 'close');
        caller.abort();
        await left;
        return 'too late';
      }

      @Get('quick')
      @RateLimit({ rate: '100/s' })
      quick(): string {
        return 'ok';
      }
    }

    const { app, ask, close } = await startHttpWire(wire, {
      imports: [RateLimitModule.forRoot({})],
      controllers: [SlowController],
    });
    const monitor = app.get(RateLimitMonitor);
    const timed = () => find(parseExposition(monitor.text()).lines, 'weir_response_seconds_count');
    await expect(ask('/slow', { signal: caller.signal })).rejects.toThrow('abort');
    await left;
    await ask('/quick');
    await until(() => timed()! > 0);
    expect(timed()).toBe(1);
    await close();
  });
});

describe('the monitor of an application', () => {
  it('keeps what happens at three horizons', async () => {
    const clock = new ManualClock(0);
    const { app, get, close } = await startShop('express', { clock });
    const monitor = app.get(RateLimitMonitor);
    for (let request = 0; request < 5; request++) await (await get('/search')).text();
    clock.advance(1000);
    expect(monitor.series('total')!.seconds.at(0)).toMatchObject({ count: 5, denied: 2 });
    expect(monitor.series('policy', 'search')!.minutes.at(0)).toMatchObject({
      count: 5,
      denied: 2,
    });
    const { series, deniedKeys } = monitor.state();
    expect(series.find(({ name }) => name === 'total')).toMatchObject({ rate: 5, denied: 2 });
    expect(deniedKeys).toEqual([
      {
        ...{ policy: 'search', key: expect.stringMatching(/^[0-9a-f]{8}$/) as string },
        ...{ denied: 2, source: 'local' },
      },
    ]);
    await close();
  });

  it('counts a request that got another answer as degraded, and not as denied too', async () => {
    const clock = new ManualClock(0);
    const { app, get, close } = await startShop('express', { clock });
    for (const path of ['page', 'page', 'page', 'search']) await (await get(`/${path}`)).text();
    clock.advance(1000);
    const total = app
      .get(RateLimitMonitor)
      .state()
      .series.find(({ name }) => name === 'total');
    expect(total).toMatchObject({ rate: 4, denied: 0, degraded: [2, 0, 0, 0] });
    await close();
  });

  it.each([
    ['plain', [{ policy: 'search', key: '(all)', denied: 1 }]],
    ['off', []],
  ] as const)('shows keys as it is told to: %s', async (keys, shown) => {
    const { app, get, close } = await startShop('express', { monitor: { keys } });
    for (let request = 0; request < 4; request++) await (await get('/search')).text();
    const { deniedKeys } = app.get(RateLimitMonitor).state();
    expect(deniedKeys.map(({ denied }) => denied)).toEqual(shown.map(({ denied }) => denied));
    await close();
  });

  it('tells which values are in demand, by their hash, and how much', async () => {
    const search = { rate: 100, period: '1h', key: 'global', hot: true } as const;
    const { app, get, close } = await startShop('express', {
      policies: { ...SHOP.policies, search },
    });
    for (let request = 0; request < 4; request++) await (await get('/search')).text();
    expect(app.get(RateLimitMonitor).state().hotValues).toEqual([
      { policy: 'search', key: expect.stringMatching(/^[0-9a-f]{8}$/) as string, perPeriod: 4 },
    ]);
    await close();
  });

  it('is not there with `monitor: false`, nor where everything is switched off', async () => {
    for (const options of [{ monitor: false }, { enabled: false }] as const) {
      const clock = new ManualClock();
      const before = clock.pending;
      const { app, close } = await startShop('express', { ...options, clock });
      expect(app.get(RateLimitMonitor)).toBeFalsy();
      await close();
      expect(clock.pending).toBe(before);
    }
  });

  it('has metrics of the line only where requests go through it', async () => {
    for (const [enabled, standing] of [
      [false, undefined],
      [true, 0],
    ] as const) {
      const { app, get, close } = await startShop('express', { overload: { enabled } });
      await (await get('/search')).text();
      const { lines } = parseExposition(app.get(RateLimitMonitor).text());
      expect(find(lines, 'weir_overload_standing')).toBe(standing);
      // On a busy machine it may have had to wait.
      const served = ['ran', 'waited'].map((outcome) =>
        find(lines, 'weir_overload_requests_total', { tier: 'all', outcome }),
      );
      expect(served.sort()).toEqual(enabled ? [0, 1] : [undefined, undefined]);
      const waited = find(lines, 'weir_overload_wait_seconds_count');
      const counted = find(lines, 'weir_overload_requests_total', {
        tier: 'all',
        outcome: 'waited',
      });
      expect(waited).toBe(counted);
      await close();
    }
  });

  it('leaves no timer behind', async () => {
    const clock = new ManualClock();
    const { close } = await startShop('express', { clock });
    expect(clock.pending).toBeGreaterThan(0);
    await close();
    expect(clock.pending).toBe(0);
  });

  it.each([
    [{ maxSeries: 0 }, 'monitor.maxSeries'],
    [{ keys: 'raw' }, 'monitor.keys'],
    [{ responses: 'yes' }, 'monitor.responses'],
    [{ onDenied: 'log' }, 'monitor.onDenied'],
    [{ respones: true }, 'monitor.respones'],
    ['on', 'monitor'],
  ])('refuses %p at the start, with its name', async (monitor, field) => {
    const imports = [RateLimitModule.forRoot({ monitor } as never)];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow(field);
  });
});
