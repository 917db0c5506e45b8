import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { quietLogger } from '../support/listen.js';
import { serve, welcomeCallers } from '../support/serve.js';
import { AppModule } from './app.module.js';
import { guide } from './guide.js';

const app = await NestFactory.create(AppModule, { logger: quietLogger });
welcomeCallers(app, () => guide);
await serve(app, guide);
