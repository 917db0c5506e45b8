import { EventEmitter } from 'node:events';
import { type Server } from 'node:http';
import { Module, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimitModule } from 'nestjs-weir';

const TURNS = 20_000;
const ROUNDS = 4;

/** Processor time that the line adds to a request that is alone in its turn, the least of some rounds. */
export async function passCostMicros(): Promise<number> {
  const [on, off] = [await application(true), await application(false)];
  try {
    const costs = [];
    for (let round = 0; round < ROUNDS; round++) {
      const without = await costOf(off.getHttpServer() as Server);
      costs.push((await costOf(on.getHttpServer() as Server)) - without);
    }
    return Math.min(...costs.slice(1));
  } finally {
    await Promise.all([on.close(), off.close()]);
  }
}

/** The listener that the line stands before does nothing. */
async function application(enabled: boolean): Promise<INestApplication> {
  @Module({ imports: [RateLimitModule.forRoot({ overload: { enabled } })] })
  class AppModule {}
  const app = await NestFactory.create(AppModule as Type, new FastifyAdapter(), { logger: false });
  const server = app.getHttpServer() as Server;
  server.removeAllListeners('request');
  server.on('request', (_, response) => void response.emit('close'));
  await app.init();
  return app;
}

async function costOf(server: Server): Promise<number> {
  const request = {
    ...{ method: 'GET', url: '/', headers: {} },
    rawHeaders: ['Host', 'x', 'User-Agent', 'bench', 'Accept', '*/*'],
  };
  const before = process.cpuUsage();
  for (let turn = 0; turn < TURNS; turn++) {
    await new Promise((resolve) => setImmediate(resolve));
    server.emit('request', request, new EventEmitter());
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / TURNS;
}
