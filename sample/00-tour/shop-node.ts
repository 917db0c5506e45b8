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

export interface NodeStart {
  readonly nodeId: string;
  readonly port: number;
  readonly store: StoreInput;
  readonly stage: Stage;
  /** Of all nodes; whoever starts them fills them in. */
  readonly addresses: readonly string[];
}

export async function startNode({ port, stage, ...settings }: NodeStart): Promise<ShopNode> {
  const actions = buttonsFor(stage, () => app.get(RateLimitConfig));
  const app: INestApplication = await NestFactory.create(
    ShopModule.on({ ...settings, actions }),
    new FastifyAdapter(),
    { logger: quietLogger, abortOnError: false },
  );
  const address = await listen(app, port, 'npm start', { endsAlone: false });
  return { app, catalog: app.get(Catalog), address: address?.replace('localhost', '127.0.0.1') };
}
