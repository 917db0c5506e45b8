import { join } from 'node:path';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, Get, type INestApplicationContext } from '@nestjs/common';
import { Args, Field, GraphQLModule, ObjectType, Query, Resolver } from '@nestjs/graphql';
import { GrpcMethod, Transport } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { RateLimitModule } from 'nestjs-weir';
import { io, type Socket } from 'socket.io-client';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { ManualClock } from '../support/manual-clock.js';
import {
  attackedHandlers,
  attackedLimits,
  attackedMessages,
  attackedWire,
  attacks,
  told,
  type AttackedApp,
} from '../support/nest/attacked.js';
import { GrpcClients, type GrpcMessage } from '../support/nest/grpc-clients.js';
import { startHttp } from '../support/nest/http-apps.js';
import { startHttpWire } from '../support/nest/http-wires.js';
import { startMessages, startService } from '../support/nest/message-app.js';
import { WIRES } from '../support/nest/message-wires.js';
import { LogLines } from '../support/nest/warnings.js';
import { until } from '../support/until.js';

interface StartedApp extends AttackedApp {
  close(): Promise<void>;
}

/** Each starts an application of its own. Messages over brokers are in odd-payloads, where the brokers run. */
const APPS: Record<string, (clock: ManualClock) => Promise<StartedApp>> = {
  'HTTP/2': startHttp2,
  grpc: startGrpc,
  'socket.io': startSockets,
  GraphQL: startGraphql,
  kafka: startKafka,
};

describe.each(Object.keys(APPS))('over %s', (name) => {
  const clock = new ManualClock();
  const log = new LogLines();
  let app: StartedApp;
  beforeAll(async () => {
    app = await APPS[name]!(clock);
    log.start();
  }, 120_000);
  afterAll(async () => {
    log.stop();
    await app?.close();
  });

  attacks(clock, log, () => app);
});

async function startKafka(clock: ManualClock): Promise<StartedApp> {
  const messages = await startMessages(
    await WIRES['kafka']!(),
    'stand-alone',
    attackedMessages(clock),
  );
  return { ...attackedWire(messages), close: () => messages.close() };
}

async function startHttp2(clock: ManualClock): Promise<StartedApp> {
  const wire = await startHttpWire('fastify on HTTP/2', {
    imports: [RateLimitModule.forRoot(attackedLimits(clock))],
    controllers: [attackedHandlers((_, route) => Get(route), Controller())],
  });
  return {
    app: wire.app,
    ask: async (route, words) => {
      const headers = { words: encodeURIComponent(words) };
      return told((await wire.ask(`/${route}`, { headers })).json);
    },
    close: () => wire.close(),
  };
}

async function startGrpc(clock: ManualClock): Promise<StartedApp> {
  const protoPath = join(root, 'test/transports/attacked.proto');
  const url = `127.0.0.1:${await freePort()}`;
  const bind = (_: object, route: string): MethodDecorator => GrpcMethod('Attacked', route);
  const imports = [RateLimitModule.forRoot(attackedLimits(clock))];
  const controllers = [attackedHandlers(bind, Controller())];
  const options = { url, package: 'weir.test', protoPath };
  const app: INestApplicationContext = await startService({ imports, controllers }, 'stand-alone', {
    ...{ transport: Transport.GRPC, options },
  });
  const clients = new GrpcClients(url, protoPath);
  return {
    app,
    ask: async (route, words) => {
      const { code, details } = await clients.call(`Attacked.${route}`, [{ words } as GrpcMessage]);
      if (code === 0) return 'ok';
      return code === 8 ? 'RATE_LIMITED' : `${code} ${details}`;
    },
    close: async () => {
      clients.close();
      await app.close();
    },
  };
}

async function startSockets(clock: ManualClock): Promise<StartedApp> {
  const bind = (_: object, route: string): MethodDecorator => SubscribeMessage(route);
  const http = await startHttp('express', {
    imports: [RateLimitModule.forRoot(attackedLimits(clock))],
    providers: [attackedHandlers(bind, WebSocketGateway())],
  });
  const socket: Socket = io(http.url, { transports: ['websocket'], forceNew: true });
  await until(() => socket.connected, { what: 'a connection' });
  return {
    app: http.app,
    ask: async (route, words) => told(await socket.timeout(5000).emitWithAck(route, { words })),
    close: async () => {
      socket.disconnect();
      await http.close();
    },
  };
}

@ObjectType()
class Answer {
  @Field(() => String)
  text!: string;
}

async function startGraphql(clock: ManualClock): Promise<StartedApp> {
  const bind = (target: object, route: string): MethodDecorator => {
    // As the compiler has it for methods that are written out.
    Reflect.defineMetadata('design:paramtypes', [String], target, route);
    Args('words', { type: () => String })(target, route, 0);
    return Query(() => Answer, { name: route });
  };
  const http = await startHttp('express', {
    imports: [
      RateLimitModule.forRoot(attackedLimits(clock)),
      GraphQLModule.forRoot<ApolloDriverConfig>({
        ...{ driver: ApolloDriver, autoSchemaFile: true },
        includeStacktraceInErrorResponses: false,
      }),
    ],
    providers: [attackedHandlers(bind, Resolver())],
  });
  return {
    app: http.app,
    ask: async (route, words) => {
      const query = `query($words: String!) { ${route}(words: $words) { text } }`;
      const response = await fetch(`${http.url}/graphql`, {
        ...{ method: 'POST', headers: { 'content-type': 'application/json' } },
        body: JSON.stringify({ query, variables: { words } }),
      });
      const { errors, data } = (await response.json()) as {
        errors?: { extensions: { code: string } }[];
        data?: Record<string, unknown>;
      };
      return errors === undefined ? told(data?.[route]) : told(errors[0]!.extensions);
    },
    close: () => http.close(),
  };
}
