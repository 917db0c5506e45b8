// Applications on every transport, on whatever Nest is found beside this. The environment says which
// (APPS: names, and for microservices how they listen); the line `ready` tells where they are.
import 'reflect-metadata';
import { type INestApplication, type LogLevel, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type MicroserviceOptions } from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Events } from './events.js';
import { moduleOf } from './modules.js';
import { GRPC_KINDS } from './proto.js';
import { fallbacksOf, type Shape } from './routes.js';
import { grpcShape, HTTP, MESSAGES } from './shapes.js';

const QUIET: { logger: LogLevel[] } = { logger: ['warn', 'error', 'fatal'] };

async function listen(starting: Promise<INestApplication>): Promise<string> {
  const app = await starting;
  await app.listen(0, '127.0.0.1');
  return app.getUrl();
}

async function serve(
  shapes: Shape[],
  options: MicroserviceOptions,
  others: Type[] = [],
): Promise<string> {
  const module = moduleOf(shapes, 'controllers', [], others);
  const app = await NestFactory.createMicroservice(module, { ...QUIET, ...options });
  await app.listen();
  return '';
}

const http = (adapter: ExpressAdapter | FastifyAdapter): Promise<string> =>
  listen(
    NestFactory.create(moduleOf([HTTP], 'controllers', [], [fallbacksOf(HTTP)]), adapter, QUIET),
  );

/** Packages that only some Nests have are loaded when they are needed. */
async function start(name: string, options: MicroserviceOptions): Promise<string> {
  switch (name) {
    case 'express':
      return http(new ExpressAdapter());
    case 'fastify':
      return http(new FastifyAdapter());
    case 'socket.io':
    case 'ws':
      return listen((await import('./gateways.js')).startGateways(name));
    case 'graphql':
      return listen((await import('./resolvers.js')).startGraphql());
    case 'grpc':
      return serve(GRPC_KINDS.map(grpcShape), options, [fallbacksOf(grpcShape('Unary'))]);
    default:
      return serve([MESSAGES], options, [Events, fallbacksOf(MESSAGES)]);
  }
}

const wanted = JSON.parse(process.env.APPS!) as Record<string, MicroserviceOptions>;
const urls: Record<string, string> = {};
for (const [name, options] of Object.entries(wanted)) urls[name] = await start(name, options);
console.log(`ready ${JSON.stringify(urls)}`);
