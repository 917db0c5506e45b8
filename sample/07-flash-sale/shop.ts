// The shop, in a process of its own: one core, and more callers than it has time for.
import 'reflect-metadata';
import { Controller, Get, Module, Param } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Overload, RateLimit, RateLimitConfig, RateLimiter, RateLimitModule } from 'nestjs-weir';
import { quietLogger } from '../support/listen.js';
import { settings } from './settings.js';
import { RENDER_MS, type ShopOrder, type ShopReport } from './shop-process.js';

const REPORT_MS = 500;

@Controller('products')
class ProductController {
  @Get(':id')
  @RateLimit('merchant')
  @RateLimit('product')
  page(@Param('id') id: string): string {
    return render(id);
  }
}

/** A page that takes the processor for some milliseconds, as templates of real shops do. */
function render(id: string): string {
  const until = performance.now() + RENDER_MS;
  let html = '';
  for (let row = 0; performance.now() < until; row++) {
    html = `<h1>Product ${id}</h1><p>${'★'.repeat(row % 5)} ${Math.sqrt(row).toFixed(3)}</p>`;
  }
  return html;
}

@Module({
  imports: [RateLimitModule.forRoot(settings)],
  controllers: [ProductController],
})
class ShopModule {}

const app = await NestFactory.create(ShopModule, { logger: quietLogger });
await app.listen(0, '127.0.0.1');
const [overload, limiter, config] = [
  app.get(Overload),
  app.get(RateLimiter),
  app.get(RateLimitConfig),
];

function report(): void {
  const { standing, waiting, turnMs, byTier } = overload.stats();
  const { profile = 'normal', overload: line, policies } = config.current().document;
  const report: ShopReport = {
    ...{ standing, waiting, turnMs, byTier, profile },
    isLineOn: line?.enabled === true,
    limits: policies?.merchant?.tiers ?? {},
    hot: limiter.hotValues('product', 3),
  };
  process.send?.(report);
}

process.on('message', (order: ShopOrder) => {
  config
    .update(order, { by: 'the page' })
    .then(report)
    .catch((error: unknown) => console.error(error));
});
// The parent process may be gone without a word.
process.once('disconnect', () => void app.close());
// As late as the loop is: without the line the page shows how long ago the last one came.
setInterval(report, REPORT_MS);
process.send?.(await app.getUrl());
report();
