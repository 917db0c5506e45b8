import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { AppModule } from './app.module.js';
import { PACKAGE, PROTO } from './inventory.js';
import { printTour } from './tour.js';

const url = `localhost:${process.env.PORT ?? 50_051}`;

const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, {
  transport: Transport.GRPC,
  options: { url, package: PACKAGE, protoPath: PROTO },
  logger: ['warn', 'error', 'fatal'],
});
app.enableShutdownHooks();
await app.listen();
await printTour(url);
console.log(`\nListening on ${url} (Ctrl-C ends it); the service is in ${PROTO}`);
