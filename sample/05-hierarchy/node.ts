import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { listen, portFrom, quietLogger } from '../support/listen.js';
import { welcomeCallers } from '../support/serve.js';
import { AppModule } from './app.module.js';
import { guideTo } from './guide.js';

const app = await NestFactory.create(AppModule, { logger: quietLogger });
// The parent process may be gone without a word.
process.once('disconnect', () => void app.close());
let addresses: string[] = [];
process.once('message', (all) => (addresses = all as string[]));
welcomeCallers(app, () => guideTo(addresses));
process.send?.(await listen(app, portFrom(process.env.PORT)));
