import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { listen, portFrom, quietLogger } from '../support/listen.js';
import { AppModule } from './app.module.js';
import { printWelcome } from './welcome.js';

const port = portFrom(process.env.PORT);
const app = await NestFactory.create(AppModule, { logger: quietLogger });
const address = await listen(app, port);
if (address !== undefined) printWelcome(address);
