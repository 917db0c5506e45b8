import 'reflect-metadata';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { credentials, loadPackageDefinition } from '@grpc/grpc-js';
import { loadSync } from '@grpc/proto-loader';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { Controller, Get, HttpCode, Module, Post, type ExecutionContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Args, GraphQLModule, Int, Query, Resolver } from '@nestjs/graphql';
import {
  ClientProxyFactory,
  GrpcMethod,
  MessagePattern,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Degrade, RateLimit, RateLimitModule, type RateLimitModuleInput } from 'nestjs-weir';
import { lastValueFrom } from 'rxjs';
import { freePort } from '../../support/free-port.js';

// Asks a route so many times, never the same and always at length, and so many times again, and prints what
// each of the two has left in memory, beside what both have left of a route that nobody limits.

const BODY_CHARACTERS = 90_000;
const URL_CHARACTERS = 14_000;
/** Client and server keep something of the first requests that they see: a megabyte or three, once. */
const FIRST_REQUESTS = 40;
/** A route keeps what it has compiled, and no more. */
const FIRST_OF_A_ROUTE = 8;

const PLENTY = { rate: 1_000_000, period: '1s' } as const;
const ANSWER = { ok: 1 };

@Controller()
class Pages {
  @Get('plain')
  plain() {
    return ANSWER;
  }

  @Get('degraded')
  @Degrade()
  degraded() {
    return ANSWER;
  }

  @Get('limited')
  @RateLimit({ ...PLENTY, key: { param: 'query.k' } })
  @RateLimit({ ...PLENTY, key: { param: 'query.pad' } })
  limited() {
    return ANSWER;
  }

  @Get('leased')
  @RateLimit({ ...PLENTY, key: { param: 'query.k' }, sync: 'leased' })
  leased() {
    return ANSWER;
  }

  @Get('denied')
  @RateLimit({ rate: 1, period: '1d', key: { param: 'query.k' } })
  denied() {
    return ANSWER;
  }

  @Get('early')
  @RateLimit({ ...PLENTY, key: { header: 'x-long' }, early: true })
  early() {
    return ANSWER;
  }

  @Get('cut')
  @RateLimit({ ...PLENTY, key: startOfHeader })
  cut() {
    return ANSWER;
  }

  @Get('cut-chosen')
  @RateLimit((context) => ({ policy: 'plenty', key: startOfHeader(context) }))
  cutChosen() {
    return ANSWER;
  }

  @Get('by-user')
  @RateLimit({ ...PLENTY, key: 'user' })
  byUser() {
    return ANSWER;
  }

  @Get('varied')
  @Degrade({ vary: ['x-long'] })
  varied() {
    return ANSWER;
  }

  @Post('denied')
  @HttpCode(200)
  @RateLimit({ rate: 1, period: '1d', key: { param: 'body.pad' } })
  deniedPost() {
    return ANSWER;
  }

  @Post('plain')
  @HttpCode(200)
  plainPost() {
    return ANSWER;
  }

  @Post('degraded')
  @HttpCode(200)
  @Degrade({ idempotent: true })
  degradedPost() {
    return ANSWER;
  }

  @Post('limited')
  @HttpCode(200)
  @RateLimit({ ...PLENTY, key: { param: 'body.pad' } })
  limitedPost() {
    return ANSWER;
  }

  @GrpcMethod('Products', 'Nothing')
  plainCall() {
    return { name: 'ok' };
  }

  @GrpcMethod('Products', 'All')
  @RateLimit({ ...PLENTY, key: { param: 'name' } })
  @Degrade({ idempotent: true })
  degradedCall() {
    return { name: 'ok' };
  }

  @GrpcMethod('Products', 'Level1')
  @RateLimit({ ...PLENTY, key: { param: 'name' } })
  limitedCall() {
    return { name: 'ok' };
  }

  @GrpcMethod('Products', 'Level2')
  @RateLimit({ ...PLENTY, key: (context) => startOfName(context) })
  cutCall() {
    return { name: 'ok' };
  }

  @GrpcMethod('Products', 'Level3')
  @RateLimit({ rate: 1, period: '1d', key: { param: 'name' } })
  deniedCall() {
    return { name: 'ok' };
  }

  @MessagePattern('plain')
  plainMessage() {
    return ANSWER;
  }

  @MessagePattern('degraded')
  @RateLimit({ ...PLENTY, key: { param: 'pad' } })
  @Degrade({ idempotent: true })
  degradedMessage() {
    return ANSWER;
  }
}

interface Pad {
  readonly pad: string;
}

@Resolver()
class Books {
  @Query(() => Int)
  plain(@Args('pad') _pad: string) {
    return 1;
  }

  @Query(() => Int)
  @RateLimit({ ...PLENTY, key: { param: 'args.pad' } })
  limited(@Args('pad') _pad: string) {
    return 1;
  }

  @Query(() => Int)
  @RateLimit({ ...PLENTY, key: (context) => context.getArgByIndex<Pad>(1).pad.slice(0, 30) })
  cut(@Args('pad') _pad: string) {
    return 1;
  }

  @Query(() => Int)
  @RateLimit({ rate: 1, period: '1d', key: { param: 'args.pad' } })
  denied(@Args('pad') _pad: string) {
    return 1;
  }
}

type Request = { readonly headers?: Readonly<Record<string, string>> };

/** A part that is cut out of a long text may hold on to all of it. */
function startOfHeader(context: ExecutionContext): string | undefined {
  const request = context.switchToHttp().getRequest<Request | undefined>();
  return request?.headers?.['x-long']?.slice(0, 30);
}

function startOfName(context: ExecutionContext): string {
  return context.switchToRpc().getData<{ name: string }>().name.slice(0, 30);
}

type Ask = (route: string, number: number) => Promise<unknown>;

const pad = (number: number, characters: number): string => `${number}-`.padEnd(characters, 'x');

const LIMITS: RateLimitModuleInput = { policies: { plenty: PLENTY }, user: startOfHeader };
/** The wires' names of routes that let the same request pass once. */
const ONCE = ['denied', 'Level3'];

async function http(
  adapter: ExpressAdapter | FastifyAdapter,
  options?: RateLimitModuleInput,
): Promise<Ask> {
  const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
  });
  const isExpress = adapter instanceof ExpressAdapter;
  class AppModule {}
  Module({
    imports: [RateLimitModule.forRoot({ ...LIMITS, ...options }), ...(isExpress ? [graphql] : [])],
    controllers: [Pages],
    providers: isExpress ? [Books] : [],
  })(AppModule);
  const app = await NestFactory.create(AppModule, adapter, { logger: ['error'] });
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const send = async (path: string, init: RequestInit) => {
    const response = await fetch(url + path, init);
    await succeeded(response);
  };
  const post = (path: string, body: object) =>
    send(path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
  return (route, number) => {
    const [verb, name] = route.split(' ');
    switch (verb) {
      case 'GET':
        return send(`/${name}?k=key-${number}-of-many&pad=${pad(number, URL_CHARACTERS)}`, {});
      case 'HEADER':
        return send(`/${name}`, { headers: { 'x-long': pad(number, URL_CHARACTERS) } });
      case 'POST':
        return post(`/${name}`, { pad: pad(number, BODY_CHARACTERS) });
      default: {
        const query = `query ($pad: String!) { ${name}(pad: $pad) }`;
        return post('/graphql', { query, variables: { pad: pad(number, BODY_CHARACTERS) } });
      }
    }
  };
}

async function succeeded(response: Response): Promise<void> {
  const text = await response.text();
  if (!response.ok || text.includes('error')) throw new Error(`${response.status} ${text}`);
}

async function serve(options: MicroserviceOptions): Promise<void> {
  class AppModule {}
  Module({ imports: [RateLimitModule.forRoot(LIMITS)], controllers: [Pages] })(AppModule);
  const app = await NestFactory.createMicroservice(AppModule, { ...options, logger: ['error'] });
  await app.listen();
}

async function grpc(): Promise<Ask> {
  const url = `127.0.0.1:${await freePort()}`;
  const protoPath = join(process.cwd(), 'test/degradation/degrade.proto');
  await serve({ transport: Transport.GRPC, options: { url, package: 'weir.test', protoPath } });
  type Call = (request: object, done: (error: Error | null) => void) => void;
  const { weir } = loadPackageDefinition(loadSync(protoPath)) as unknown as {
    weir: { test: { Products: new (...args: unknown[]) => Record<string, Call> } };
  };
  const client = new weir.test.Products(url, credentials.createInsecure());
  return (route, number) =>
    new Promise<void>((resolve, reject) => {
      const done = (error: Error | null): void => (error ? reject(error) : resolve());
      client[route]!({ name: pad(number, BODY_CHARACTERS) }, done);
    });
}

async function tcp(): Promise<Ask> {
  const options = { host: '127.0.0.1', port: await freePort() };
  await serve({ transport: Transport.TCP, options });
  const client = ClientProxyFactory.create({ transport: Transport.TCP, options });
  await client.connect();
  return (route, number) =>
    lastValueFrom(client.send(route, { pad: pad(number, BODY_CHARACTERS) }));
}

const WIRES: Readonly<Record<string, () => Promise<Ask>>> = {
  express: () => http(new ExpressAdapter()),
  fastify: () => http(new FastifyAdapter()),
  redis: () => {
    const store = { type: 'redis', url: process.env.REDIS_URL!, decisionTimeout: '5s' } as const;
    return http(new ExpressAdapter(), { store, service: 'pages' });
  },
  grpc,
  tcp,
};

async function askOften(ask: Ask, route: string, from: number, to: number): Promise<void> {
  const isOnce = ONCE.some((name) => route.endsWith(name));
  for (let i = from; i < to; i++) {
    await ask(route, i);
    if (isOnce) await isRefused(ask(route, i));
  }
}

async function isRefused(answer: Promise<unknown>): Promise<void> {
  const isAnswered = await answer.then(
    () => true,
    () => false,
  );
  if (isAnswered) throw new Error('was answered twice');
}

/** Some of what is free is found to be so only when the event loop has turned. */
async function inUse(): Promise<number> {
  for (let i = 0; i < 3; i++) {
    await setImmediate();
    gc!();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** The route to compare with, those that are attacked, and how often. */
export type Attack = readonly [
  wire: string,
  plain: string,
  attacked: readonly string[],
  requests: number,
];

const attacks = JSON.parse(process.argv[2]!) as Attack[];
const asks = new Map<string, Ask>();
for (const [wire, plain, attacked, requests] of attacks) {
  const ask = asks.get(wire) ?? (await WIRES[wire]!());
  asks.set(wire, ask);
  await askOften(ask, plain, -FIRST_REQUESTS, 0);
  for (const route of attacked) await askOften(ask, route, -FIRST_OF_A_ROUTE, 0);
  let before = await inUse();
  const left = async (route: string, from: number): Promise<number> => {
    await askOften(ask, route, from, from + requests);
    const after = await inUse();
    const bytes = after - before;
    before = after;
    return bytes;
  };
  const twice = async (route: string) => [await left(route, 0), await left(route, requests)];
  const [control, again] = await twice(plain);
  for (const route of attacked) {
    const grown = await twice(route);
    console.log(JSON.stringify({ wire, route, requests, grown, control: control! + again! }));
  }
}
process.exit(0);
