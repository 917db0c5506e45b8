import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { guided, isTour } from '../support/serve.js';
import { AppModule } from './app.module.js';
import { PACKAGE, PROTO } from './inventory.js';
import { takeTour } from './tour.js';

const url = `localhost:${process.env.PORT ?? 50_051}`;

const app = await NestFactory.createMicroservice<MicroserviceOptions>(AppModule, {
  transport: Transport.GRPC,
  options: { url, package: PACKAGE, protoPath: PROTO },
  logger: ['warn', 'error', 'fatal'],
});
app.enableShutdownHooks();
await app.listen();
await guided((tour) => takeTour(url, tour));
if (isTour) await app.close();
else console.log(`\nListening on ${url} (Ctrl-C ends it); the service is in ${PROTO}`);
