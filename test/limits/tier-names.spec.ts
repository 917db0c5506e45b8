import { Controller, Get } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  RateLimit,
  RateLimitConfig,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

const TIERS = { rate: '10/h', tiers: { free: '2/h', pro: '100/h' } } as const;
let name: string | undefined;

@Controller()
class OrdersController {
  @Get('orders')
  @RateLimit('orders')
  orders(): string {
    return 'ok';
  }

  @Get('chosen')
  @RateLimit(() => ({ policy: 'chosen', tier: name! }))
  chosen(): string {
    return 'ok';
  }
}

describe('the name of a tier', () => {
  const warnings = new Warnings();
  let http: HttpApp;
  const start = async (options: RateLimitModuleInput): Promise<void> => {
    warnings.texts.length = 0;
    const imports = [RateLimitModule.forRoot(options)];
    const metadata = { imports, controllers: [OrdersController] };
    http = await startHttp('express', metadata, warnings.listen);
  };
  const ask = async (path: string, tier: string | undefined): Promise<void> => {
    name = tier;
    expect((await http.get(path)).status).toBe(200);
  };
  const unknown = (policy: string, tier: string, tiers = 'free, pro'): string =>
    `Policy '${policy}': tier ${JSON.stringify(tier)} is none of its tiers (${tiers}). ` +
    'Such requests have the default tier; where that is meant, let it be undefined.';
  afterEach(() => http.close());

  it('that no tier has is told, once for each policy and name, and of a policy no more than three', async () => {
    const tier = () => name;
    await start({ policies: { orders: { ...TIERS, tier }, chosen: TIERS } });
    for (const one of ['premium', 'premium', undefined, 'default', 'normal', 'pro'])
      await ask('/orders', one);
    expect(warnings.texts).toEqual([unknown('orders', 'premium')]);
    await ask('/chosen', 'premium');
    expect(warnings.texts).toEqual([unknown('orders', 'premium'), unknown('chosen', 'premium')]);
    for (const one of ['a', 'b\nc', 'd', 'e']) await ask('/orders', one);
    const told = [unknown('orders', 'a'), unknown('orders', 'b\nc')];
    expect(warnings.texts.slice(2)).toEqual(told);
  });

  it('is looked for among those that the configuration has by now', async () => {
    await start({ policies: { orders: { ...TIERS, tier: () => name }, chosen: TIERS } });
    const config = http.app.get(RateLimitConfig);
    await config.update({ policies: { orders: { tiers: { premium: '50/h' } } } });
    await ask('/orders', 'premium');
    expect(warnings.texts).toEqual([]);
  });
});

describe('tiers that nothing chooses from', () => {
  const warnings = new Warnings();
  const toldAtStart = async (options: RateLimitModuleInput): Promise<string[]> => {
    class AppModule {}
    const app = await NestFactory.create(
      {
        module: AppModule,
        imports: [RateLimitModule.forRoot(options)],
        controllers: [OrdersController],
      },
      { logger: false },
    );
    warnings.texts.length = 0;
    warnings.listen(app);
    await app.init();
    await app.close();
    return warnings.texts;
  };

  it('are told of at start, if they are those of a route', async () => {
    expect(await toldAtStart({ policies: { orders: TIERS, chosen: TIERS } })).toEqual([
      "Policy 'orders': it has tiers (free, pro), but nothing says which of them a request has, so all have the " +
        "default tier. Give the policy a 'tier', or the module.",
    ]);
  });

  it('are not, where the policy or the module has a tier', async () => {
    const orders = { ...TIERS, tier: 'pro' } as const;
    expect(await toldAtStart({ policies: { orders, chosen: TIERS } })).toEqual([]);
    const policies = { orders: TIERS, chosen: TIERS };
    expect(await toldAtStart({ policies, tier: () => 'pro' })).toEqual([]);
  });
});
