import { type INestApplication, type ModuleMetadata } from '@nestjs/common';
import { NestFactory, type AbstractHttpAdapter } from '@nestjs/core';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Module, type Type } from '@nestjs/common';

export const PLATFORMS = ['express', 'fastify'] as const;
export type Platform = (typeof PLATFORMS)[number];

export interface HttpApp {
  readonly app: INestApplication;
  readonly url: string;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  close(): Promise<void>;
}

/** A real application on a port of its own. */
export async function startHttp(
  platform: Platform,
  metadata: ModuleMetadata,
  prepare: (app: INestApplication) => void = () => {},
  adapter: AbstractHttpAdapter = platform === 'express'
    ? new ExpressAdapter()
    : new FastifyAdapter(),
): Promise<HttpApp> {
  class AppModule {}
  Module(metadata)(AppModule);
  const app = await NestFactory.create(AppModule as Type, adapter, {
    logger: false,
    abortOnError: false,
  });
  prepare(app);
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  return {
    app,
    url,
    get: (path, headers = {}) => fetch(url + path, { headers }),
    close: () => app.close(),
  };
}
