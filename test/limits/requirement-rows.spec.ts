import { Controller, Get, Injectable } from '@nestjs/common';
import {
  createRateLimiter,
  Degrade,
  Protect,
  RateLimit,
  RateLimitModule,
  type Decision,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

@Injectable()
class Orders {
  queries = 0;

  @Protect('db', { rate: 'db' })
  async query(): Promise<number> {
    return Promise.resolve(++this.queries);
  }
}

@Controller()
class Shop {
  isDown = false;

  constructor(private readonly orders: Orders) {}

  @Get('search')
  @RateLimit({ rate: '2/s', key: 'global' })
  search(): string {
    return 'found';
  }

  @Get('price')
  @RateLimit({ rate: '1/s', key: 'global' })
  price(): string {
    return '9.99';
  }

  @Get('orders')
  async all(): Promise<string> {
    return `query ${await this.orders.query()}`;
  }

  @Get('detail')
  @RateLimit({ rate: '2/s', key: 'global' })
  @Degrade({ blockHandler: 'blocked', fallback: 'broken', level1: false, level2: false })
  detail(): string {
    if (this.isDown) throw new Error('down');
    return 'detail';
  }

  blocked(): string {
    return 'too many ask';
  }

  broken(): string {
    return 'cannot be read';
  }
}

describe('rows of the requirements on the limits of a service', () => {
  let server: HttpApp;

  beforeEach(async () => {
    const policies = { db: { rate: '3/s', key: 'global' } } as const;
    server = await startHttp('fastify', {
      imports: [RateLimitModule.forRoot({ clock: new ManualClock(), policies })],
      controllers: [Shop],
      providers: [Orders],
    });
  });
  afterEach(() => server.close());

  const ask = async (path: string, times: number): Promise<[status: number, body: string][]> => {
    const answers: [number, string][] = [];
    for (let i = 0; i < times; i++) {
      const answer = await server.get(path);
      answers.push([answer.status, await answer.text()]);
    }
    return answers;
  };
  const statuses = async (path: string, times: number): Promise<number[]> =>
    (await ask(path, times)).map(([status]) => status);

  it('E-15: each interface has a threshold of its own', async () => {
    expect(await statuses('/search', 3)).toEqual([200, 200, 429]);
    expect(await statuses('/price', 2)).toEqual([200, 429]);
  });

  it('E-16: so has a resource behind them, and what is over it does not reach it', async () => {
    expect(await statuses('/orders', 5)).toEqual([200, 200, 200, 503, 503]);
    expect(server.app.get(Orders).queries).toBe(3);
  });

  it('E-19: one method answers who is limited, another who has met a failure', async () => {
    server.app.get(Shop).isDown = true;
    expect(await ask('/detail', 1)).toEqual([[200, 'cannot be read']]);
    server.app.get(Shop).isDown = false;
    expect(await ask('/detail', 2)).toEqual([
      [200, 'detail'],
      [200, 'too many ask'],
    ]);
  });

  it('E-20: a sliding window has no edge at which twice the limit passes', async () => {
    const clock = new ManualClock(0);
    const policies = { api: { rate: '10/s', algorithm: 'sliding-window' } } as const;
    const limiter = createRateLimiter({ policies, clock });
    const passed = async (asked: number): Promise<number> => {
      const all: Decision[] = [];
      for (let i = 0; i < asked; i++) {
        all.push(await limiter.tryAcquire({ policy: 'api', key: 'k' }));
      }
      return all.filter(({ allowed }) => allowed).length;
    };
    // A window that begins with each second would let ten pass here, and ten more a moment later.
    clock.advance(950);
    expect(await passed(15)).toBe(10);
    clock.advance(100);
    expect(await passed(15)).toBe(0);
    clock.advance(1000);
    expect(await passed(15)).toBe(10);
    await limiter.close();
  });
});
