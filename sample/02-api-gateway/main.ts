import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { listen, portFrom, quietLogger } from '../support/listen.js';
import { AppModule } from './app.module.js';
import { printWelcome } from './welcome.js';

const port = portFrom(process.env.PORT);
const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: quietLogger });
// The load balancer in front of a gateway is on this machine here; name yours.
app.set('trust proxy', 'loopback');
const address = await listen(app, port, 'npm run sample:gateway');
if (address !== undefined) printWelcome(address);
