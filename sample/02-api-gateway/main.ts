import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { quietLogger } from '../support/listen.js';
import { serve, welcomeCallers } from '../support/serve.js';
import { AppModule } from './app.module.js';
import { guide } from './guide.js';

const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: quietLogger });
// The load balancer in front of a gateway is on this machine here; name yours.
app.set('trust proxy', 'loopback');
welcomeCallers(app, () => guide);
await serve(app, guide);
