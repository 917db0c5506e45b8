import { Controller, Get, type ExecutionContext, type INestApplication } from '@nestjs/common';
import { RateLimit, RateLimitCost, RateLimitModule, RequestFaults, type Tier } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

/** Headers stand in for a token. */
const planOf = (context: ExecutionContext): Tier => {
  const plan = context.switchToHttp().getRequest<{ headers: Record<string, string | undefined> }>()
    .headers['x-plan'];
  return plan === undefined
    ? undefined
    : (JSON.parse(plan, (_, value: unknown) => (value === 'NaN' ? NaN : value)) as Tier);
};

@Controller()
class PlansController {
  @Get('plan')
  @RateLimit({ name: 'plan', rate: 1, period: '1m', tiers: { vip: 3 }, tier: planOf })
  plan(): string {
    return 'ok';
  }

  @Get('plan-later')
  @RateLimit({
    name: 'plan',
    rate: 1,
    period: '1m',
    tier: (context) => Promise.resolve(planOf(context)),
  })
  planLater(): string {
    return 'ok';
  }

  @Get('plan-early')
  @RateLimit({
    ...{ name: 'plan', rate: 1, period: '1m', key: 'global', early: true },
    tier: (context) => Promise.resolve(planOf(context)),
  })
  planEarly(): string {
    return 'ok';
  }

  @Get('plan-dear')
  @RateLimitCost(2)
  @RateLimit({ name: 'plan', rate: 2, period: '1m', tier: planOf })
  planDear(): string {
    return 'ok';
  }

  @Get('plan-chosen')
  @RateLimit((context) => ({ policy: 'one', limit: planOf(context) as never }))
  planChosen(): string {
    return 'ok';
  }

  @Get('plan-shaped')
  @RateLimit({
    ...{ algorithm: 'leaky-bucket', mode: 'shaper', rate: '1/m', maxDelay: '1ms' },
    ...{ name: 'plan', tier: planOf },
  })
  @RateLimit('many')
  planShaped(): string {
    return 'ok';
  }
}

describe.each(PLATFORMS)('a tier of figures, on %s', (platform) => {
  let http: HttpApp;
  let clock: ManualClock;

  const start = async (prepare?: (app: INestApplication) => void): Promise<void> => {
    clock = new ManualClock();
    const policies = { one: { rate: 1, period: '1m' }, many: { rate: 100, period: '1m' } } as const;
    const imports = [RateLimitModule.forRoot({ clock, policies })];
    http = await startHttp(platform, { imports, controllers: [PlansController] }, prepare);
  };
  const statuses = async (count: number, path: string, headers = {}): Promise<number[]> => {
    const all: number[] = [];
    for (let i = 0; i < count; i++) all.push((await http.get(path, headers)).status);
    return all;
  };

  afterEach(() => http.close());

  const plan = (figures: unknown): Record<string, string> => ({
    'x-plan': JSON.stringify(figures),
  });

  it.each(['/plan', '/plan-later', '/plan-early'])(
    'a resolver says which figures: %s',
    async (path) => {
      await start();
      const two = plan({ rate: 2 });
      expect(await statuses(3, path, two)).toEqual([200, 200, 429]);
      expect(await statuses(2, path)).toEqual([200, 429]);
      expect(await statuses(4, path, plan({ rate: '3/h' }))).toEqual([200, 200, 200, 429]);
      // Two plans of one size: each has the time that its own bucket takes.
      const told = async (figures: unknown): Promise<string | null> =>
        (await http.get(path, plan(figures))).headers.get('ratelimit-policy');
      expect(await told({ rate: 5, burst: 60 })).toBe('"plan";q=60;w=720');
      expect(await told({ rate: 60 })).toBe('"plan";q=60;w=60');
      expect(await told({ rate: 60, period: '1h' })).toBe('"plan";q=60;w=3600');
      expect(await told(7)).toBe('"plan";q=7;w=60');
      expect(http.app.get(RequestFaults).total).toBe(0);
    },
  );

  it.each(['/plan', '/plan-later', '/plan-early'])(
    'figures that are none are the default tier, counted, and told once a minute: %s',
    async (path) => {
      const warnings = new Warnings();
      await start(warnings.listen);
      const bad = [
        ...[
          { rate: 0 },
          { rate: -5 },
          { rate: 'NaN' },
          { rate: 5, burst: 'NaN' },
          { rate: 'fast' },
        ],
        ...[{ rate: 5, brust: 1 }, {}, [5], true, { rate: 5, burst: null }],
      ];
      const answers: number[] = [];
      for (const figures of bad) answers.push((await http.get(path, plan(figures))).status);
      expect(answers).toEqual([200, ...bad.slice(1).map(() => 429)]);
      const faults = http.app.get(RequestFaults);
      // The guard asks again for the one that an early policy has let pass.
      expect(faults.total).toBe(bad.length + (path === '/plan-early' ? 1 : 0));
      expect(Object.keys(faults.byCause())).toEqual([expect.stringContaining(': tier failed')]);
      expect(warnings.texts.filter((text) => text.includes('tier failed'))).toHaveLength(1);
      expect(warnings.texts.join()).toContain(
        'limit.rate: expected a finite number above 0, got 0',
      );
      clock.advance(60_000);
      expect((await http.get(path, plan({ rate: 0 }))).status).toBe(200);
      expect(warnings.texts.filter((text) => text.includes('tier failed'))).toHaveLength(2);
    },
  );

  it('figures hold less than the route costs: the default tier again', async () => {
    await start();
    expect(await statuses(2, '/plan-dear', plan({ rate: 1 }))).toEqual([200, 429]);
    expect(await statuses(3, '/plan-dear', plan({ rate: 4 }))).toEqual([200, 200, 429]);
    expect(http.app.get(RequestFaults).total).toBe(2);
  });

  it('a choice brings figures, and a list of policies is all or nothing with them', async () => {
    await start();
    expect(await statuses(3, '/plan-chosen', plan({ rate: 2 }))).toEqual([200, 200, 429]);
    expect(await statuses(2, '/plan-chosen', plan({ rate: 0 }))).toEqual([200, 429]);
    const shaped = plan({ rate: '1/h', burst: 5 });
    expect(await statuses(3, '/plan-shaped', shaped)).toEqual([200, 429, 429]);
    const { headers } = await http.get('/plan-shaped', plan({ rate: '2/h' }));
    expect(headers.get('ratelimit-policy')).toBe('"plan";q=2;w=3600, "many";q=100;w=60');
    expect(headers.get('ratelimit')).toContain('"many";r=98');
  });
});
