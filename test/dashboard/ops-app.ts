import {
  Controller,
  Get,
  Injectable,
  type CanActivate,
  type INestApplication,
} from '@nestjs/common';
import {
  Degrade,
  Protect,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { RateLimitDashboardModule, type DashboardInput } from 'nestjs-weir/dashboard';
import { startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';

@Injectable()
class Stock {
  @Protect('stock', { breaker: {} })
  read(): Promise<string> {
    return Promise.resolve('12 left');
  }
}

@Controller()
class ShopController {
  constructor(private readonly stock: Stock) {}

  @Get('search')
  @RateLimit('search')
  search(): string {
    return 'found';
  }

  @Get('stock')
  @RateLimit()
  async left(): Promise<string> {
    return await this.stock.read();
  }

  @Get('page')
  @Degrade({ level4: 'a plain page' })
  @RateLimit('page')
  page(): string {
    return 'page';
  }
}

const SHOP: RateLimitModuleInput = {
  app: 'shop',
  nodeId: 'api-1',
  quota: { cluster: { capacity: 1000 }, apps: { shop: { guaranteed: 100, burst: 200 } } },
  policies: {
    search: { rate: 3, period: '1h', key: 'ip' },
    page: { rate: 1, period: '1h', key: 'global' },
  },
};

export const open: CanActivate = { canActivate: () => true };
export const closed: CanActivate = { canActivate: () => false };

export interface OpsApp extends HttpApp {
  /** As the page sends it. */
  send(
    method: string,
    path: string,
    body: unknown,
    headers?: Record<string, string>,
  ): Promise<Response>;
}

/** A shop with its dashboard at /ops/limits. */
export async function startOps(
  platform: Platform,
  options: RateLimitModuleInput = {},
  dashboard: Partial<DashboardInput> = {},
  prepare?: (app: INestApplication) => void,
): Promise<OpsApp> {
  const app = await startHttp(
    platform,
    {
      imports: [
        RateLimitModule.forRoot({ ...SHOP, ...options }),
        RateLimitDashboardModule.forRoot({ path: 'ops/limits', guard: open, ...dashboard }),
      ],
      controllers: [ShopController],
      providers: [Stock],
    },
    prepare,
  );
  const send: OpsApp['send'] = (method, path, body, headers = {}) =>
    fetch(app.url + path, {
      method,
      body: JSON.stringify(body),
      headers: {
        'content-type': 'application/json',
        'x-weir-request': '1',
        origin: app.url,
        ...headers,
      },
    });
  return { ...app, send };
}
