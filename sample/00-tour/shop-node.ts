import { type INestApplication } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimitConfig, type StoreInput } from 'nestjs-weir';
import { listen, quietLogger } from '../support/listen.js';
import { buttonsFor } from './buttons.js';
import { Catalog } from './catalog.js';
import { ShopModule } from './shop.module.js';
import { type Stage } from './stage.js';

export const NODES = ['api-1', 'api-2', 'api-3'] as const;

/** One node of the shop, as it runs. */
export interface ShopNode {
  readonly app: INestApplication;
  readonly catalog: Catalog;
  /** Undefined if the port is taken. */
  readonly address: string | undefined;
}

export async function startNode(
  nodeId: string,
  port: number,
  store: StoreInput,
  stage: Stage,
): Promise<ShopNode> {
  const actions = buttonsFor(stage, () => app.get(RateLimitConfig));
  const app: INestApplication = await NestFactory.create(
    ShopModule.on({ nodeId, store, actions }),
    new FastifyAdapter(),
    { logger: quietLogger, abortOnError: false },
  );
  const address = await listen(app, port, 'npm start', { endsAlone: false });
  return { app, catalog: app.get(Catalog), address: address?.replace('localhost', '127.0.0.1') };
}
