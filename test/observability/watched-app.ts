import {
  Controller,
  Get,
  HttpException,
  Injectable,
  Sse,
  type ExecutionContext,
  type INestApplication,
} from '@nestjs/common';
import {
  Degrade,
  Protect,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { of, type Observable } from 'rxjs';
import { startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';

@Injectable()
export class Stock {
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

  @Get('broken')
  @RateLimit('search')
  broken(): never {
    throw new HttpException('broken', 500);
  }

  @Get('page')
  @Degrade({ level4: 'a plain page' })
  @RateLimit('page')
  page(): string {
    return 'page';
  }

  @Sse('news')
  @RateLimit()
  news(): Observable<{ data: string }> {
    return of({ data: 'new' });
  }

  @Get('free')
  free(): string {
    return 'free';
  }
}

export const SHOP: RateLimitModuleInput = {
  app: 'shop',
  quota: { cluster: { capacity: 1000 }, apps: { shop: { guaranteed: 100, burst: 200 } } },
  policies: {
    search: { rate: 3, period: '1h', key: 'global' },
    page: { rate: 1, period: '1h', key: 'global' },
    idle: { rate: 1, period: '1h', key: 'global' },
  },
};

export type Denials = [policy: string, path: string][];

/** A shop whose routes meet every part that counts. */
export function startShop(
  platform: Platform,
  options: RateLimitModuleInput = {},
  imports: NonNullable<Parameters<typeof startHttp>[1]['imports']> = [],
  prepare?: (app: INestApplication) => void,
): Promise<HttpApp> {
  const metadata = {
    imports: [RateLimitModule.forRoot({ ...SHOP, ...options }), ...imports],
    controllers: [ShopController],
    providers: [Stock],
  };
  return startHttp(platform, metadata, prepare);
}

export const pathOf = (context: ExecutionContext): string =>
  context.switchToHttp().getRequest<{ url: string }>().url;
