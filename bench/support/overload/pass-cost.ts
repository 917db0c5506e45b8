import { EventEmitter } from 'node:events';
import { type Server } from 'node:http';
import { Module, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimitModule } from 'nestjs-weir';

type App = INestApplication;

const TURNS = 20_000;
/** Until all of it is compiled, which takes some 200,000 requests; the route beside it is warm as well. */
const WARM_UP = 10;
const ROUNDS = WARM_UP + 12;

/**
 * Processor time that the line adds to a request that is alone in its turn, in the least disturbed of the rounds:
 * beside two applications without it, whose difference says how far that may be off.
 */
export async function passCosts(): Promise<readonly [one: number, again: number]> {
  const apps = [await application(true), await application(false), await application(false)];
  const least = apps.map(() => Infinity);
  try {
    for (let round = 0; round < ROUNDS; round++) {
      for (const [i, app] of apps.entries()) {
        const cost = await costOf(app);
        if (round >= WARM_UP) least[i] = Math.min(least[i]!, cost);
      }
    }
    return [least[0]! - least[1]!, least[0]! - least[2]!];
  } finally {
    await Promise.all(apps.map((app) => app.close()));
  }
}

/** The listener that the line stands before does nothing. */
async function application(enabled: boolean): Promise<App> {
  @Module({ imports: [RateLimitModule.forRoot({ overload: { enabled } })] })
  class AppModule {}
  const app = await NestFactory.create(AppModule as Type, new FastifyAdapter(), { logger: false });
  const server = app.getHttpServer() as Server;
  server.removeAllListeners('request');
  server.on('request', (_, response) => void response.emit('close'));
  await app.init();
  return app;
}

async function costOf(app: App): Promise<number> {
  const server = app.getHttpServer() as Server;
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
