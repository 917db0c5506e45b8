import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { type INestApplication } from '@nestjs/common';
import { RateLimitConfig, type StoreInput } from 'nestjs-weir';
import { startRedis } from '../05-hierarchy/redis.js';
import { RedisSwitch } from '../06-product-page/redis-switch.js';
import { listen, quietLogger } from '../support/listen.js';
import { buttonsFor, type Stage } from './buttons.js';
import { Catalog } from './catalog.js';
import { ShopModule } from './shop.module.js';
import { Traffic } from './traffic.js';

/** The store of the nodes, and how to take it away. */
interface Store {
  readonly kind: 'redis' | 'memory';
  readonly input: StoreInput;
  readonly switch: RedisSwitch | undefined;
  close(): Promise<void>;
}

export interface Fleet {
  readonly address: string;
  readonly kind: Store['kind'];
  readonly nodes: number;
  stop(): Promise<void>;
}

const NODES = ['api-1', 'api-2', 'api-3'];

/** Starts the nodes and the traffic to them; undefined if the port is taken. */
export async function startFleet(port: number, wantsRedis: boolean): Promise<Fleet | undefined> {
  const store = await openStore(wantsRedis);
  const catalog = new Catalog();
  const stages: Stage[] = [];
  const actions = buttonsFor(() => stages[0]!);
  // In memory each process has limits of its own: then one node is all there is to see.
  const names = store.kind === 'memory' ? NODES.slice(0, 1) : NODES;
  const apps: INestApplication[] = [];
  const addresses: string[] = [];
  const stop = async (): Promise<void> => {
    stages[0]?.traffic.stop();
    await Promise.all(apps.map((app) => app.close()));
    await store.close();
  };
  for (const [index, nodeId] of names.entries()) {
    const module = ShopModule.on({ nodeId, store: store.input, catalog, actions });
    const app = await NestFactory.create(module, new FastifyAdapter(), {
      logger: quietLogger,
      abortOnError: false,
    }).catch(async (error: unknown) => {
      // Redis would outlive this process.
      await stop();
      throw error;
    });
    apps.push(app);
    const address = await listen(app, index === 0 ? port : 0, 'npm start', { endsAlone: false });
    if (address === undefined) {
      await stop();
      return undefined;
    }
    addresses.push(address.replace('localhost', '127.0.0.1'));
  }
  const traffic = new Traffic(addresses);
  stages.push({
    ...{ traffic, catalog, store: store.switch },
    config: apps[0]!.get(RateLimitConfig),
  });
  traffic.start();
  return { address: addresses[0]!, kind: store.kind, nodes: names.length, stop };
}

async function openStore(wantsRedis: boolean): Promise<Store> {
  if (!wantsRedis) {
    return { kind: 'memory', input: 'memory', switch: undefined, close: () => Promise.resolve() };
  }
  const redis = await startRedis();
  const between = await RedisSwitch.before(redis.url);
  return {
    kind: 'redis',
    input: { type: 'redis', url: between.url, decisionTimeout: '100ms' },
    switch: between,
    close: async () => {
      between.close();
      await redis.stop();
    },
  };
}
