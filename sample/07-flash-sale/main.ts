import 'reflect-metadata';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { fileURLToPath } from 'node:url';
import { quietLogger } from '../support/listen.js';
import { isTour, serve, welcomeCallers } from '../support/serve.js';
import { Callers } from './callers.js';
import { guide } from './guide.js';
import { Sale } from './sale.js';
import { SaleController } from './sale.controller.js';
import { ShopProcess } from './shop-process.js';

const PAGE = fileURLToPath(new URL('../../../sample/07-flash-sale/page', import.meta.url));

// The shop is another process: whoever looks at a server that has no time needs another one to look from.
const shop = await ShopProcess.start();
const callers = new Callers(shop.url);

@Module({
  controllers: [SaleController],
  providers: [
    Sale,
    { provide: ShopProcess, useValue: shop },
    { provide: Callers, useValue: callers },
  ],
})
class PageModule {
  async onApplicationShutdown(): Promise<void> {
    callers.end();
    await shop.stop();
  }
}

const app = await NestFactory.create<NestExpressApplication>(PageModule, {
  logger: quietLogger,
  // A page that is open asks twice a second, and would keep its connection for as long as it is.
  forceCloseConnections: true,
});
welcomeCallers(app, () => guide, { hasPage: true });
app.useStaticAssets(PAGE);
callers.begin();
const isUp = await serve(app, guide);
if (!isUp || isTour) await app.close().catch(() => {});
