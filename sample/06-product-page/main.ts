import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { fileURLToPath } from 'node:url';
import { listen, portFrom, quietLogger } from '../support/listen.js';
import { AppModule } from './app.module.js';
import { RedisSwitch } from './redis-switch.js';
import { Vitals } from './vitals.js';
import { printWelcome } from './welcome.js';

const PAGE = fileURLToPath(new URL('../../../sample/06-product-page/page', import.meta.url));

const port = portFrom(process.env.PORT);
const { REDIS_URL: redisUrl } = process.env;
const redis = redisUrl ? await RedisSwitch.before(redisUrl) : undefined;
const app = await NestFactory.create<NestExpressApplication>(AppModule.on(redis), {
  logger: quietLogger,
});
const vitals = app.get(Vitals);
app.use('/products', vitals.watch);
app.useStaticAssets(PAGE);
const address = await listen(app, port, 'npm run sample:degradation');
if (address === undefined) redis?.close();
else {
  vitals.begin();
  printWelcome(address, redisUrl);
}
