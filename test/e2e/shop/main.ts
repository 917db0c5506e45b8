// One process of a shop: a gateway's limits, a page that can be degraded, a cache and a database that get slow.
import {
  Controller,
  Get,
  Injectable,
  Module,
  Param,
  Post,
  type LoggerService,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import {
  Degrade,
  degradeMessage,
  LocalCache,
  Protect,
  Protection,
  RateLimit,
  RateLimitModule,
} from 'nestjs-weir';
import { shopOptions } from './limits.js';
import { type ShopOrder, type ShopReport } from './protocol.js';

/** How long each of them takes. */
const slowness = { database: 0, cache: 0 };

const answerOf = (what: keyof typeof slowness): Promise<void> =>
  new Promise((resolve) => setTimeout(resolve, slowness[what]));

@Injectable()
class Products {
  private readonly local = new LocalCache<string>();

  constructor(private readonly protection: Protection) {}

  @Protect('db')
  async price(id: string): Promise<{ id: string; price: number }> {
    await answerOf('database');
    return { id, price: 10 };
  }

  @Protect('db', { fallback: 'noReviews' })
  async reviews(id: string): Promise<string[]> {
    await answerOf('database');
    return [`${id} is good`];
  }

  noReviews(): Promise<string[]> {
    return Promise.resolve([]);
  }

  /** The shared cache, then the one of this process, then the database. */
  stock(id: string): Promise<string | undefined> {
    return this.protection.firstOf<string>(
      [
        {
          resource: 'cache',
          run: () => answerOf('cache').then(() => 'from the cache'),
        },
        { run: () => this.local.get(id), keep: (found) => this.local.set(id, found) },
        { resource: 'db', run: () => answerOf('database').then(() => 'from the database') },
      ],
      { key: id, deadlineMs: 1000 },
    );
  }
}

@Controller()
class ShopController {
  constructor(private readonly products: Products) {}

  @Get('product/:id')
  @RateLimit('uri')
  @RateLimit('user')
  @RateLimit('merchant')
  @RateLimit('product')
  @Degrade({
    ...{ resource: 'page', shared: true, level4: degradeMessage('The shop is busy.') },
    warm: ({ products }: { products: Products }) =>
      ['1', '2', '3'].map((id) => ({ params: { id }, load: () => products.price(id) })),
  })
  page(@Param('id') id: string) {
    return this.products.price(id);
  }

  @Get('reviews/:id')
  async reviews(@Param('id') id: string) {
    return { reviews: await this.products.reviews(id) };
  }

  @Get('stock/:id')
  async stock(@Param('id') id: string) {
    return { stock: await this.products.stock(id) };
  }

  @Post('order')
  @RateLimit('order')
  order() {
    return { ordered: true };
  }
}

const say =
  (level: string) =>
  (text: string): void =>
    tell({ report: 'said', line: `${level} ${text}` });

const LOGGER: LoggerService = { log: say('log'), warn: say('warn'), error: say('error') };

let app: NestExpressApplication;

async function obey(order: ShopOrder): Promise<void> {
  switch (order.order) {
    case 'open': {
      class ShopModule {}
      Module({
        imports: [RateLimitModule.forRoot(shopOptions(order.url, order.nodeId))],
        controllers: [ShopController],
        providers: [Products],
      })(ShopModule);
      app = await NestFactory.create<NestExpressApplication>(ShopModule, { logger: LOGGER });
      app.set('trust proxy', 'loopback');
      await app.listen(0, '127.0.0.1');
      return tell({ report: 'opened', url: await app.getUrl() });
    }
    case 'slow':
      slowness[order.what] = order.ms;
      return tell({ report: 'slowed' });
    case 'close':
      await app.close();
      tell({ report: 'closed' });
      process.off('disconnect', endWithParent);
      process.disconnect();
  }
}

function tell(report: ShopReport): void {
  process.send?.(report);
}

function endWithParent(): void {
  process.exit(0);
}

process.on('disconnect', endWithParent);
process.on('message', (order) => {
  obey(order as ShopOrder).catch((error: unknown) => {
    tell({ report: 'broken', reason: error instanceof Error ? error.stack! : String(error) });
  });
});
