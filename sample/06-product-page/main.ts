import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { fileURLToPath } from 'node:url';
import { quietLogger } from '../support/listen.js';
import { isTour, serve, welcomeCallers } from '../support/serve.js';
import { AppModule } from './app.module.js';
import { guideTo } from './guide.js';
import { RedisSwitch } from './redis-switch.js';
import { Vitals } from './vitals.js';

const PAGE = fileURLToPath(new URL('../../../sample/06-product-page/page', import.meta.url));

const { REDIS_URL: redisUrl } = process.env;
const redis = redisUrl ? await RedisSwitch.before(redisUrl) : undefined;
const app = await NestFactory.create<NestExpressApplication>(AppModule.on(redis), {
  logger: quietLogger,
});
const guide = guideTo(redisUrl);
const vitals = app.get(Vitals);
app.use('/products', vitals.watch);
welcomeCallers(app, () => guide, { hasPage: true });
app.useStaticAssets(PAGE);
const isUp = (await serve(app, guide)) && !isTour;
if (isUp) vitals.begin();
else redis?.close();
