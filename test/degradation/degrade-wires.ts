import { join } from 'node:path';
import { Get, NotFoundException, type INestApplicationContext } from '@nestjs/common';
import {
  ClientProxyFactory,
  GrpcMethod,
  MessagePattern,
  RpcException,
  Transport,
} from '@nestjs/microservices';
import { RateLimitModule, type DegradeOptions } from 'nestjs-weir';
import { lastValueFrom } from 'rxjs';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { GrpcClients } from '../support/nest/grpc-clients.js';
import { startHttp, type Platform } from '../support/nest/http-apps.js';
import { startService } from '../support/nest/message-app.js';
import { moduleOptions, productsController, type Offer } from './degrade-routes.js';
import { type Stage } from './degrade-stage.js';

/** How a request ended, in the same words on every transport. */
export interface Answer {
  /** The name of the product; undefined if there was none. */
  readonly name: string | undefined;
  /** Which call of the handler it is from. */
  readonly call: number | undefined;
  /** `level=2; reason=limited`, from wherever the transport says it. */
  readonly mark: string | undefined;
  /** The status of an answer that is none. */
  readonly failed: string | number | undefined;
}

/** An application with the products, and a way to ask it. */
export interface DegradeWire {
  readonly app: INestApplicationContext;
  /** `name` is what the question is about. */
  ask(offer: Offer, name?: string): Promise<Answer>;
  /** The error of a request that gets no answer, as its client reads it. */
  errorOf(offer: Offer): Promise<unknown>;
  /** The error of a caller that has asked for something that does not exist. */
  readonly notFound: { readonly error: Error; readonly failed: string | number };
  close(): Promise<void>;
}

export const WIRES: Readonly<Record<string, (stage: Stage) => Promise<DegradeWire>>> = {
  express: (stage) => http('express', stage),
  fastify: (stage) => http('fastify', stage),
  grpc,
  tcp,
};

async function http(platform: Platform, stage: Stage): Promise<DegradeWire> {
  const { app, get, close } = await startHttp(
    platform,
    modulesOf(stage, (offer) => Get(offer)),
  );
  return {
    app,
    close,
    notFound: { error: new NotFoundException(), failed: 404 },
    async ask(offer, name = '') {
      const response = await get(`/${offer}?name=${name}`);
      const answer = (await response.json()) as Partial<Answer>;
      const mark = response.headers.get('x-degraded') ?? undefined;
      if (!response.ok) return { name: undefined, call: undefined, mark, failed: response.status };
      return { name: answer.name, call: answer.call, mark, failed: undefined };
    },
    errorOf: async (offer) => (await get(`/${offer}`)).json(),
  };
}

async function grpc(stage: Stage): Promise<DegradeWire> {
  const url = `127.0.0.1:${await freePort()}`;
  const protoPath = join(root, 'test/degradation/degrade.proto');
  const app = await startService(
    modulesOf(stage, (offer) => GrpcMethod('Products', capital(offer)), { idempotent: true }),
    'stand-alone',
    { transport: Transport.GRPC, options: { url, package: 'weir.test', protoPath } },
  );
  const clients = new GrpcClients(url, protoPath);
  return {
    app,
    async close() {
      clients.close();
      await app.close();
    },
    notFound: { error: new RpcException({ code: 5, message: 'not found' }), failed: 5 },
    async ask(offer, name) {
      const method = `Products.${capital(offer)}`;
      const { code, replies, trailers } = await clients.call(method, [{ name }]);
      const reply = replies[0] as { name?: string; call?: number } | undefined;
      const [mark] = trailers.get('x-degraded').map((text) => String(text).split('; age')[0]);
      return { name: reply?.name, call: reply?.call, mark, failed: code === 0 ? undefined : code };
    },
    async errorOf(offer) {
      const { trailers, ...status } = await clients.call(`Products.${capital(offer)}`);
      return { ...status, metadata: trailers };
    },
  };
}

async function tcp(stage: Stage): Promise<DegradeWire> {
  const options = { host: '127.0.0.1', port: await freePort() };
  const degrade = { idempotent: true, field: 'degraded' };
  const app = await startService(
    modulesOf(stage, (offer) => MessagePattern(offer), degrade),
    'stand-alone',
    { transport: Transport.TCP, options },
  );
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  await client.connect();
  return {
    app,
    async close() {
      await client.close();
      await app.close();
    },
    notFound: { error: new RpcException({ statusCode: 404 }), failed: 404 },
    async ask(offer, name) {
      try {
        const reply = await lastValueFrom(client.send<TcpReply>(offer, { name }));
        const { degraded, call } = reply;
        const mark = degraded && `level=${degraded.level}; reason=${degraded.reason}`;
        return { name: reply.name, call, mark, failed: undefined };
      } catch (error) {
        const { statusCode, code, reason, message } = error as Record<string, string | number>;
        const mark = code === 'DEGRADED' ? `level=4; reason=${reason}` : undefined;
        return { name: undefined, call: undefined, mark, failed: statusCode ?? message };
      }
    },
    errorOf: (offer) => lastValueFrom(client.send(offer, {})).catch((error: unknown) => error),
  };
}

interface TcpReply {
  readonly name: string;
  readonly call: number;
  readonly degraded?: { readonly level: number; readonly reason: string };
}

function modulesOf(
  stage: Stage,
  bind: (offer: Offer) => MethodDecorator,
  degrade: DegradeOptions = {},
) {
  return {
    imports: [RateLimitModule.forRoot(moduleOptions(stage))],
    controllers: [productsController(stage, bind, degrade)],
  };
}

function capital(text: string): string {
  return text[0]!.toUpperCase() + text.slice(1);
}
