import 'reflect-metadata';
import { ConsoleLogger } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { AppModule } from './app.module.js';
import { printWelcome } from './welcome.js';

const port = portFrom(process.env.PORT);

const logger = new ConsoleLogger({ logLevels: ['warn', 'error', 'fatal'] });
const app = await NestFactory.create(AppModule, { logger });
// Ctrl-C and SIGTERM close the app, and with it the limiter.
app.enableShutdownHooks();
try {
  // Nest would log a port that is taken beside the one line that says what to do about it.
  app.useLogger(false);
  await app.listen(port);
  app.useLogger(logger);
  printWelcome(await app.getUrl());
} catch (error) {
  console.error(reasonOf(error));
  await app.close();
  process.exitCode = 1;
}

function portFrom(text = '3000'): number {
  const number = Number(text || NaN);
  if (Number.isInteger(number) && number >= 0 && number <= 65_535) return number;
  console.error(`PORT must be a number from 0 to 65535, and is "${text}".`);
  process.exit(1);
}

function reasonOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  switch (code) {
    case 'EADDRINUSE':
      return `Port ${port} is taken. Choose another: PORT=${port + 1} npm start`;
    case 'EACCES':
      return `Port ${port} is not open to you. Choose one above 1023: PORT=3000 npm start`;
    default:
      return message;
  }
}
