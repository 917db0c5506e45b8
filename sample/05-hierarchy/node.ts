import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { listen, portFrom, quietLogger } from '../support/listen.js';
import { AppModule } from './app.module.js';

const app = await NestFactory.create(AppModule, { logger: quietLogger });
// Whoever started it may be gone without a word.
process.once('disconnect', () => void app.close());
process.send?.(await listen(app, portFrom(process.env.PORT)));
