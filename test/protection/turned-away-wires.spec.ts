import { join } from 'node:path';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Catch,
  Controller,
  Inject,
  Logger,
  UseFilters,
  type ExceptionFilter,
  type ModuleMetadata,
} from '@nestjs/common';
import {
  Args,
  Field,
  GraphQLModule,
  ObjectType,
  Query,
  ResolveField,
  Resolver,
} from '@nestjs/graphql';
import {
  EventPattern,
  GrpcMethod,
  GrpcStreamCall,
  GrpcStreamMethod,
  MessagePattern,
  Transport,
  type MicroserviceOptions,
} from '@nestjs/microservices';
import { Test } from '@nestjs/testing';
import { MessageBody, SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import { isRateLimitError, isUnavailableError, ProtectionRejectedError } from 'nestjs-weir';
import { concat, defer, from, of, throwError, type Observable } from 'rxjs';
import { io } from 'socket.io-client';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { until } from '../support/until.js';
import { readStatus } from '../support/nest/google-rpc.js';
import { GrpcClients, type Outcome } from '../support/nest/grpc-clients.js';
import { startHttp } from '../support/nest/http-apps.js';
import { kafkaWire, type KafkaDouble } from '../transports/kafka-double.js';
import { Ledger, ledgerModules, SECRET, TOLD, TROUBLES } from '../support/nest/ledger.js';
import {
  KINDS,
  startMessages,
  startService,
  type Kind,
  type MessageApp,
} from '../support/nest/message-app.js';
import { WIRES, type Wire } from '../support/nest/message-wires.js';
import { PlainAdapter } from '../support/nest/plain-sockets.js';
import { LogLines } from '../support/nest/warnings.js';

interface Question {
  readonly name: string;
}

@Catch(ProtectionRejectedError)
class Mine implements ExceptionFilter {
  catch(): Observable<never> {
    return throwError(() => ({ code: 9, message: 'my own words' }));
  }
}

/** Everything that was started here, latest first. */
const toClose: (() => unknown)[] = [];

beforeAll(() => {
  Logger.overrideLogger(false);
});
afterEach(async () => {
  for (const close of toClose.splice(0)) await close();
});

@Controller()
class Messages {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  @MessagePattern('ask')
  ask({ name }: Question): Promise<unknown> {
    return this.ledger.ask(name);
  }

  @MessagePattern('mine')
  @UseFilters(Mine)
  mine({ name }: Question): Promise<unknown> {
    return this.ledger.ask(name);
  }

  @EventPattern('tell')
  tell({ name }: Question): Promise<unknown> {
    return this.ledger.ask(name);
  }
}

async function messages(wire: Wire, kind: Kind): Promise<MessageApp> {
  const app = await startMessages(wire, kind, { ...ledgerModules(), controllers: [Messages] });
  toClose.unshift(() => app.close());
  return app;
}

const failure = (request: Promise<unknown>): Promise<unknown> =>
  request.then(
    () => undefined,
    (error: unknown) => error,
  );

describe.each(KINDS)('messages of an application that is %s', (kind) => {
  it('are told in a typed error, and never by what', async () => {
    const app = await messages(await WIRES.tcp!(), kind);
    for (const trouble of TROUBLES) {
      const error = await failure(app.send('ask', { name: trouble }));
      expect(error).toEqual(TOLD[trouble]);
      expect([isUnavailableError(error), isRateLimitError(error)]).toEqual([true, false]);
    }
    const wrong = await failure(app.send('ask', { name: 'big' }));
    expect(wrong).toEqual({ status: 'error', message: 'Internal server error' });
    expect(isUnavailableError(wrong)).toBe(false);
    expect(await failure(app.send('mine', { name: 'open' }))).toMatchObject({ code: 9 });
  });

  it('that want no reply are a line of the log a minute, however many there are', async () => {
    const app = await messages(await WIRES.tcp!(), kind);
    const log = new LogLines();
    log.start();
    for (let i = 0; i < 10; i++) await app.emit('tell', { name: 'open' });
    await until(() => log.lines.length > 0, { what: 'the line of an event' });
    await app.send('ask', { name: 'none' });
    log.stop();
    expect(log.lines).toEqual([expect.stringMatching(/^warn 1 request .*"secret-open"/)]);
    expect(log.stacks).toEqual([]);
  });
});

describe('messages of a hybrid application that is under test', () => {
  it('are told the same', async () => {
    const wire = await WIRES.tcp!();
    const module = Test.createTestingModule({ ...ledgerModules(), controllers: [Messages] });
    const app = (await module.compile()).createNestApplication({ logger: false });
    app.connectMicroservice<MicroserviceOptions>(wire.serve());
    await app.startAllMicroservices();
    const client = await wire.connect();
    toClose.push(
      () => client.close(),
      () => app.close(),
    );
    expect(await failure(client.send('ask', { name: 'open' }))).toEqual(TOLD.open);
  });
});

describe('messages of Kafka', () => {
  it('are delivered again if they are events, and answered if they are not', async () => {
    let kafka!: KafkaDouble;
    const app = await messages(await kafkaWire((server) => (kafka = server)), 'stand-alone');
    expect(await failure(app.send('ask', { name: 'open' }))).toEqual(TOLD.open);
    expect(kafka.refused).toEqual([]);
    // An event is what has no reply topic, whatever its handler.
    for (const topic of ['tell', 'ask']) await app.emit(topic, { name: 'open' });
    const failed = { status: 'error', message: 'Internal server error' };
    expect(kafka.refused).toEqual([failed, failed]);
  });
});

@Controller()
class Calls {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  @GrpcMethod('Ledger', 'Ask')
  ask({ name }: Question): Promise<unknown> {
    return this.ledger.ask(name);
  }

  @GrpcMethod('Ledger', 'Watch')
  watch({ name }: Question): Observable<unknown> {
    return concat(
      of({ text: 'one' }),
      defer(() => from(this.ledger.ask(name))),
    );
  }

  @GrpcStreamMethod('Ledger', 'Tell')
  tell(): Promise<unknown> {
    return this.ledger.ask('open');
  }

  @GrpcStreamCall('Ledger', 'Bare')
  bare(): Promise<unknown> {
    return this.ledger.ask('open');
  }
}

async function grpc(kind: Kind): Promise<GrpcClients> {
  const url = `127.0.0.1:${await freePort()}`;
  const protoPath = join(root, 'test/support/nest/ledger.proto');
  const options: MicroserviceOptions = {
    transport: Transport.GRPC,
    options: { url, package: 'weir.test', protoPath },
  };
  const metadata: ModuleMetadata = { ...ledgerModules(), controllers: [Calls] };
  const app = await startService(metadata, kind, options);
  const clients = new GrpcClients(url, protoPath);
  toClose.unshift(
    () => clients.close(),
    () => app.close(),
  );
  return clients;
}

function trailersOf({ trailers }: Outcome) {
  const said = (name: string): number | undefined => {
    const [text] = trailers.get(name);
    return text === undefined ? undefined : Number(text);
  };
  const status = readStatus(trailers.get('grpc-status-details-bin')[0] as Buffer);
  return { pushback: said('grpc-retry-pushback-ms'), retryAfter: said('retry-after-ms'), status };
}

describe.each(KINDS)('calls of gRPC to an application that is %s', (kind) => {
  it('end with 14 or 4, with what a client can act on', async () => {
    const clients = await grpc(kind);
    for (const trouble of TROUBLES) {
      const outcome = await clients.call('Ledger.Ask', [{ name: trouble }]);
      const { message, code, retryAfterMs } = TOLD[trouble];
      expect([outcome.code, outcome.details]).toEqual([trouble === 'late' ? 4 : 14, message]);
      const { pushback, retryAfter, status } = trailersOf(outcome);
      expect(retryAfter).toBe(retryAfterMs);
      expect(status.details.ErrorInfo).toMatchObject({ reason: code });
      expect('RetryInfo' in status.details).toBe(retryAfterMs !== undefined);
      // The caller has a deadline of twenty seconds, after which no retry makes sense.
      if (trouble === 'limited') expect(pushback).toBe(-1);
      else if (retryAfterMs === undefined) expect(pushback).toBeUndefined();
      else expect(pushback! >= retryAfterMs && pushback! <= retryAfterMs * 1.2).toBe(true);
      expect(JSON.stringify([outcome.trailers, outcome.details, status])).not.toContain(SECRET);
    }
    expect((await clients.call('Ledger.Ask', [{ name: 'big' }])).code).toBe(2);
  });

  it('so do streams, also those that have begun and those that Nest takes no part in', async () => {
    const clients = await grpc(kind);
    const begun = await clients.call('Ledger.Watch', [{ name: 'open' }]);
    expect([begun.code, begun.replies.length, trailersOf(begun).retryAfter]).toEqual([14, 1, 4200]);
    for (const call of ['Ledger.Tell', 'Ledger.Bare']) {
      const outcome = await clients.call(call, [{ name: 'a' }]);
      expect([call, outcome.code, trailersOf(outcome).retryAfter]).toEqual([call, 14, 4200]);
    }
  });
});

@WebSocketGateway()
class Gateway {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  @SubscribeMessage('ask')
  ask(@MessageBody() { name }: Question): Promise<unknown> {
    return this.ledger.ask(name);
  }
}

describe('messages of sockets', () => {
  const told = (trouble: (typeof TROUBLES)[number]): object => {
    const { statusCode: _statusCode, ...body } = TOLD[trouble];
    return { ...body, cause: { pattern: 'ask' } };
  };
  const metadata = () => {
    const { imports, providers } = ledgerModules();
    return { imports, providers: [...providers, Gateway] };
  };

  it('of socket.io are told by an event and by their acknowledgement', async () => {
    const http = await startHttp('express', metadata());
    const socket = io(http.url, { transports: ['websocket'], forceNew: true, reconnection: false });
    toClose.push(
      () => socket.disconnect(),
      () => http.close(),
    );
    const events: [string, unknown][] = [];
    socket.onAny((event: string, payload: unknown) => events.push([event, payload]));
    await until(() => socket.connected, { what: 'a connection' });
    for (const trouble of TROUBLES) {
      const name = { name: trouble };
      const answer: unknown = await socket.timeout(5_000).emitWithAck('ask', name);
      expect(answer).toEqual(told(trouble));
    }
    await until(() => events.length === TROUBLES.length, { what: 'all events' });
    expect(events).toEqual(TROUBLES.map((trouble) => ['exception', told(trouble)]));
  });

  it('of plain ones are told by an event', async () => {
    let adapter!: PlainAdapter;
    const http = await startHttp('express', metadata(), (app) => {
      app.useWebSocketAdapter((adapter = new PlainAdapter(app)));
    });
    toClose.push(() => http.close());
    const client = adapter.connect();
    client.receive('ask', { name: 'open' });
    await until(() => client.sent.length > 0, { what: 'an answer' });
    expect(client.sent).toEqual([{ event: 'exception', data: told('open') }]);
  });
});

@ObjectType()
class Page {
  @Field(() => String)
  title!: string;
}

@Resolver(() => Page)
class LedgerResolver {
  constructor(@Inject(Ledger) private readonly ledger: Ledger) {}

  @Query(() => String, { nullable: true })
  async ask(@Args('name', { type: () => String }) name: string): Promise<string> {
    return JSON.stringify(await this.ledger.ask(name));
  }

  @Query(() => Page)
  page(): Page {
    return { title: 'one' };
  }

  @ResolveField(() => String, { nullable: true })
  async entry(): Promise<string> {
    return JSON.stringify(await this.ledger.ask('open'));
  }
}

async function graphql(): Promise<(query: string) => Promise<[Response, string]>> {
  const { imports, providers } = ledgerModules();
  const module = GraphQLModule.forRoot<ApolloDriverConfig>({
    driver: ApolloDriver,
    autoSchemaFile: true,
    preserveHttpStatusForExecutionErrors: false,
    fieldResolverEnhancers: ['filters'],
  });
  const http = await startHttp('express', {
    imports: [...imports, module],
    providers: [...providers, LedgerResolver],
  });
  toClose.push(() => http.close());
  return async (query) => {
    const response = await fetch(`${http.url}/graphql`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ query }),
    });
    return [response, await response.text()];
  };
}

describe('fields of GraphQL', () => {
  it('are told by an error with a code', async () => {
    const ask = await graphql();
    for (const trouble of TROUBLES) {
      const [response, text] = await ask(`{ ask(name: "${trouble}") }`);
      const { statusCode, message, status: _status, ...extensions } = TOLD[trouble];
      expect([trouble, response.status]).toEqual([trouble, statusCode]);
      const seconds = { open: '5', full: null, limited: '30', late: null }[trouble];
      expect(response.headers.get('retry-after')).toBe(seconds);
      expect(JSON.parse(text)).toMatchObject({ errors: [{ message, extensions }] });
      expect(text).not.toContain(SECRET);
    }
  });

  it('and so are fields of objects, if the driver lets filters see them', async () => {
    const ask = await graphql();
    const [, text] = await ask('{ page { title entry } }');
    expect(JSON.parse(text)).toMatchObject({
      data: { page: { title: 'one', entry: null } },
      errors: [{ message: TOLD.open.message, extensions: { code: 'BREAKER_OPEN' } }],
    });
    expect(text).not.toContain(SECRET);
  });
});
