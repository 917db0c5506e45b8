import 'reflect-metadata';
import { ConsoleLogger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { announce, isTour, welcomeCallers } from '../support/serve.js';
import { GatewayModule } from './gateway.module.js';
import { guide } from './guide.js';
import { ServiceModule } from './service.module.js';

const port = portFrom('PORT', '3000');
const servicePort = portFrom('SERVICE_PORT', '3001');

const logger = new ConsoleLogger({ logLevels: ['warn', 'error', 'fatal'] });
const options = { host: '127.0.0.1', port: servicePort };

// Usually two processes; here one, so that there is one thing to start.
const service = await NestFactory.createMicroservice<MicroserviceOptions>(ServiceModule, {
  transport: Transport.TCP,
  options,
  logger,
});
const gateway = await NestFactory.create(GatewayModule.of(options), { logger });
for (const app of [service, gateway]) app.enableShutdownHooks();
welcomeCallers(gateway, () => guide);
try {
  // Nest would log a port that is taken beside the one line that says what to do about it.
  gateway.useLogger(false);
  await service.listen();
  await gateway.listen(port);
  gateway.useLogger(logger);
  await announce((await gateway.getUrl()).replace('[::1]', 'localhost'), guide);
  if (isTour) await close();
} catch (error) {
  console.error(reasonOf(error));
  await close();
  process.exitCode = 1;
}

async function close(): Promise<void> {
  await gateway.close();
  await service.close();
}

function portFrom(variable: string, usual: string): number {
  const text = process.env[variable] ?? usual;
  const number = Number(text || NaN);
  if (Number.isInteger(number) && number > 0 && number <= 65_535) return number;
  console.error(`${variable} must be a number from 1 to 65535, and is "${text}".`);
  process.exit(1);
}

function reasonOf(error: unknown): string {
  const { code, message, port: taken } = error as NodeJS.ErrnoException & { port?: number };
  if (code !== 'EADDRINUSE') return message;
  const variable = taken === servicePort ? 'SERVICE_PORT' : 'PORT';
  return `Port ${taken} is taken. Choose another: ${variable}=${Number(taken) + 10} npm run sample:microservices`;
}
