import { Controller, Get, Injectable } from '@nestjs/common';
import { Degradation, Degrade, Protect, Protection, RateLimitModule } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

@Injectable()
class Catalog {
  isDown = false;

  @Protect('catalog')
  async find(): Promise<string> {
    return this.isDown ? Promise.reject(new Error('down')) : Promise.resolve('as it is');
  }
}

@Controller()
class Products {
  constructor(private readonly catalog: Catalog) {}

  @Get('products')
  @Degrade({ resource: 'catalog', level1: false, level2: false, level4: 'the default' })
  products(): Promise<string> {
    return this.catalog.find();
  }

  @Get('health')
  @Degrade({ level4: 'the default' })
  health(): string {
    return 'as it is';
  }
}

describe('a resource whose breaker opens', () => {
  let app: HttpApp;
  const clock = new ManualClock();

  const start = async (mode: 'auto' | 'observe'): Promise<void> => {
    const breaker = { minimumCalls: 3, mode, openFor: '1s' } as const;
    // The window of the recovery itself needs many more calls.
    const degradation = { recovery: { minCalls: 1000 } };
    const protection = { catalog: { breaker } };
    app = await startHttp('express', {
      imports: [RateLimitModule.forRoot({ clock, protection, degradation })],
      controllers: [Products],
      providers: [Catalog],
    });
  };

  afterEach(() => app.close());

  const text = async (path: string): Promise<string> => (await app.get(path)).text();
  const failures = async (count: number): Promise<void> => {
    app.app.get(Catalog).isDown = true;
    for (let i = 0; i < count; i++) await app.get('/products');
  };
  const phases = (): string[] =>
    app.app
      .get(Degradation)
      .stats()
      .resources.map(({ resource, phase }) => `${resource} ${phase}`);

  it('is degraded at once, and comes back by probes', async () => {
    await start('auto');
    const changes: unknown[] = [];
    app.app.get(Degradation).on('state', (change) => changes.push(change));
    expect(await text('/products')).toContain('as it is');
    await failures(3);
    expect(phases()).toEqual(['catalog degraded', 'Products.health normal']);
    expect(changes).toMatchObject([{ resource: 'catalog', from: 'normal', cause: 'breaker' }]);
    expect(await text('/products')).toContain('the default');
    expect(await text('/health')).toContain('as it is');
    app.app.get(Catalog).isDown = false;
    clock.advance(60_000);
    expect(await text('/products')).toContain('as it is');
  });

  it('is left alone where the breaker only watches, and by breakers of other resources', async () => {
    await start('observe');
    await failures(10);
    expect(app.app.get(Protection).stats().catalog!.breaker!.openings).toBe(1);
    expect(phases()).toEqual(['catalog normal', 'Products.health normal']);
  });
});
