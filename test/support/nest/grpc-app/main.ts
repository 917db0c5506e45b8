// A server of gRPC for the tests, on whatever Nest it finds beside it. The environment says what it
// is: KIND, PORT, PROTO, and HYBRID for one that serves HTTP as well.
import 'reflect-metadata';
import { NestFactory } from '@nestjs/core';
import { Transport, type MicroserviceOptions } from '@nestjs/microservices';
import { appModule, type Kind } from './app.module.js';

const { KIND, PORT, PROTO, HYBRID } = process.env;
const module = appModule(KIND as Kind);
const options: MicroserviceOptions = {
  transport: Transport.GRPC,
  options: { package: 'weir.test', protoPath: PROTO!, url: `127.0.0.1:${PORT}` },
};
const logger = ['warn', 'error', 'fatal'] as const;

if (HYBRID === undefined) {
  const app = await NestFactory.createMicroservice(module, { ...options, logger: [...logger] });
  await app.listen();
} else {
  const app = await NestFactory.create(module, { logger: [...logger] });
  app.connectMicroservice<MicroserviceOptions>(options, { inheritAppConfig: KIND === 'applied' });
  await app.startAllMicroservices();
  await app.listen(0);
}
console.log('ready');
