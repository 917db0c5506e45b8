// One process of the fleet: an application with limits, and a bare subscriber beside it.
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { RateLimitConfig, RateLimitModule } from 'nestjs-weir';
import { DOCUMENT, patchOf } from './document.js';
import {
  BARE_CHANNEL,
  BARE_KEY,
  sharedMicros,
  type MemberOrder,
  type MemberReport,
  type MemberSetup,
} from './protocol.js';

const BARE_DOCUMENT = JSON.stringify(DOCUMENT);

let config: RateLimitConfig;
let client: Redis;

async function open({ url, nodeId }: MemberSetup): Promise<void> {
  client = new Redis(url);
  const subscriber = new Redis(url);
  // The least that a fleet does whose messages are hints: hear of a change, then read it.
  subscriber.on('message', (_channel, message) => {
    void client.get(BARE_KEY).then(() => got(Number(message)));
  });
  await subscriber.subscribe(BARE_CHANNEL);
  const app = await NestFactory.createApplicationContext(moduleOf(url, nodeId), {
    logger: ['error', 'warn'],
  });
  config = app.get(RateLimitConfig);
  config.changes$.subscribe(({ to }) => got(to.document.version ?? 0));
  tell({ report: 'opened' });
}

function moduleOf(url: string, nodeId: string) {
  class MemberModule {}
  const { policies, cluster, apps } = DOCUMENT;
  Module({
    imports: [
      RateLimitModule.forRoot({
        ...{ policies, nodeId, app: 'shop', quota: { cluster, apps } },
        store: { type: 'redis', url },
      }),
    ],
  })(MemberModule);
  return MemberModule;
}

function got(number: number): void {
  tell({ report: 'got', number, atMicros: sharedMicros() });
}

async function obey(order: MemberOrder): Promise<void> {
  if (order.order === 'open') return open(order.setup);
  const { number } = order;
  const atMicros = sharedMicros();
  if (order.order === 'publish') {
    await client.set(BARE_KEY, BARE_DOCUMENT);
    await client.publish(BARE_CHANNEL, String(number));
  } else {
    await config.update(patchOf(number));
  }
  tell({ report: 'begun', number, atMicros });
}

function tell(report: MemberReport): void {
  process.send?.(report);
}

process.on('message', (order) => {
  obey(order as MemberOrder).catch((error: unknown) => {
    tell({ report: 'failed', reason: error instanceof Error ? error.stack! : String(error) });
  });
});
process.on('disconnect', () => process.exit(0));
