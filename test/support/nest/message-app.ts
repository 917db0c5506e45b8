import {
  Controller,
  Module,
  type INestApplicationContext,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MessagePattern, type MicroserviceOptions } from '@nestjs/microservices';
import { until } from '../until.js';
import { type MessageClient, type Wire } from './message-wires.js';

export const KINDS = ['stand-alone', 'hybrid'] as const;
export type Kind = (typeof KINDS)[number];

export interface MessageApp extends MessageClient {
  readonly app: INestApplicationContext;
  /** Closes the client alone. */
  hangUp(): Promise<void>;
}

/** A real microservice, by itself or beside an HTTP server, and a client that is connected to it. */
export async function startMessages(
  wire: Wire,
  kind: Kind,
  metadata: ModuleMetadata,
): Promise<MessageApp> {
  const controllers = [Readiness, ...(metadata.controllers ?? [])];
  const app = await startService({ ...metadata, controllers }, kind, wire.serve());
  const client = await wire.connect();
  // Brokers may take a subscription after the microservice says that it listens.
  await until(() => answersSoon(client), { what: 'the microservice to answer' });
  return {
    app,
    send: (...args) => client.send(...args),
    emit: (...args) => client.emit(...args),
    hangUp: () => client.close(),
    close: async () => {
      await client.close();
      await app.close();
    },
  };
}

/** The microservice alone; a hybrid one has nothing of the application's configuration. */
export function startService(
  metadata: ModuleMetadata,
  kind: Kind,
  options: MicroserviceOptions,
): Promise<INestApplicationContext> {
  class AppModule {}
  Module(metadata)(AppModule);
  return kind === 'hybrid' ? startHybrid(AppModule, options) : startAlone(AppModule, options);
}

@Controller()
class Readiness {
  @MessagePattern('ready')
  ready(): object {
    return { ready: true };
  }
}

function answersSoon(client: MessageClient): Promise<unknown> {
  const never = new Promise((resolve) => setTimeout(resolve, 250, false).unref());
  return Promise.race([client.send('ready', {}), never]);
}

const QUIET = { logger: false, abortOnError: false } as const;

async function startAlone(module: Type, options: MicroserviceOptions) {
  const app = await NestFactory.createMicroservice<MicroserviceOptions>(module, {
    ...QUIET,
    ...options,
  });
  await app.listen();
  return app;
}

async function startHybrid(module: Type, options: MicroserviceOptions) {
  const app = await NestFactory.create(module, QUIET);
  app.connectMicroservice<MicroserviceOptions>(options);
  await app.startAllMicroservices();
  await app.init();
  return app;
}
