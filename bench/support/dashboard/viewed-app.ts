import { fork } from 'node:child_process';
import { once } from 'node:events';
import { type Server } from 'node:http';
import { type Socket } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Module, type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { loopbackOnly, RateLimitDashboardModule } from 'nestjs-weir/dashboard';

export interface ViewedApp {
  readonly app: INestApplication;
  /** The address of the page. */
  readonly url: string;
  /** The connections of viewers. */
  readonly sockets: ReadonlySet<Socket>;
  /** Resolves when all viewers are connected and have read all that was written to them, but for the one that reads nothing. */
  taken(): Promise<void>;
  close(): Promise<void>;
}

const VIEWERS = fileURLToPath(new URL('./viewers.js', import.meta.url));

/** An application with its dashboard, and so many viewers of it in a process of their own. */
export async function startViewed(
  options: RateLimitModuleInput,
  viewers: number,
): Promise<ViewedApp> {
  class BenchModule {}
  const guard = loopbackOnly();
  Module({
    imports: [
      RateLimitModule.forRoot(options),
      RateLimitDashboardModule.forRoot({ path: 'weir', guard }),
    ],
  })(BenchModule);
  const app = await NestFactory.create(BenchModule as Type, new FastifyAdapter(), {
    logger: false,
  });
  const sockets = new Set<Socket>();
  (app.getHttpServer() as Server).on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  await app.listen(0, '127.0.0.1');
  const url = `${await app.getUrl()}/weir/`;
  const looking = viewers === 0 ? undefined : fork(VIEWERS, [url, String(viewers)]);
  // All of them have had a frame.
  if (looking !== undefined) await once(looking, 'message');
  const taken = async (): Promise<void> => {
    const isTaken = (): boolean =>
      sockets.size >= viewers - 1 &&
      [...sockets].filter(({ writableLength }) => writableLength > 0).length <= 1;
    while (!isTaken()) await pause(1);
  };
  const close = async (): Promise<void> => {
    looking?.kill('SIGKILL');
    await app.close();
  };
  return { app, url, sockets, taken, close };
}
