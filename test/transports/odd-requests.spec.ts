import { join } from 'node:path';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  All,
  Body,
  Controller,
  Inject,
  Injectable,
  type ExecutionContext,
  type INestApplicationContext,
} from '@nestjs/common';
import { Args, type CustomScalar, GraphQLModule, Query, Resolver, Scalar } from '@nestjs/graphql';
import { GrpcMethod, GrpcStreamCall, GrpcStreamMethod, Transport } from '@nestjs/microservices';
import { SubscribeMessage, WebSocketGateway } from '@nestjs/websockets';
import {
  Degrade,
  Protect,
  RateLimit,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { map, toArray, type Observable } from 'rxjs';
import { io, type Socket } from 'socket.io-client';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { ManualClock } from '../support/manual-clock.js';
import { GrpcClients, type GrpcMessage } from '../support/nest/grpc-clients.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';
import {
  HTTP_WIRES,
  startHttpWire,
  type HttpQuestion,
  type HttpWire,
} from '../support/nest/http-wires.js';
import { startService } from '../support/nest/message-app.js';
import { PlainAdapter } from '../support/nest/plain-sockets.js';
import { LogLines } from '../support/nest/warnings.js';
import { until } from '../support/until.js';

/** What callers send so that something of ours fails: each gets an answer, and no fault of ours. */

const log = new LogLines();
const unhandled: unknown[] = [];
const listen = (error: unknown): void => void unhandled.push(error);

beforeAll(() => {
  process.on('unhandledRejection', listen);
  log.start();
});
afterAll(() => {
  log.stop();
  process.off('unhandledRejection', listen);
});
afterEach(() => {
  expect([log.stacks.splice(0), unhandled.splice(0)]).toEqual([[], []]);
});

/** What a careless application makes of a payload: types say that it is there. */
function field<T>(name: string) {
  return (context: ExecutionContext): T => payloadOf(context)[name] as T;
}

function payloadOf(context: ExecutionContext): Record<string, unknown> {
  const args = context.getArgs<Record<string, Record<string, unknown>>[]>();
  switch (context.getType<string>()) {
    case 'http':
      return args[0]!.body!;
    case 'graphql':
      return args[1]!.any!;
    case 'ws':
      return args[1]!;
    default:
      return args[0]!;
  }
}

const limits = (param: string): RateLimitModuleInput => ({
  clock: new ManualClock(),
  app: field<string>('app'),
  quota: { apps: { orders: { guaranteed: 1000, burst: 1000 } } },
  policies: {
    keyed: { rate: 1e6, key: [{ param }, { header: 'x-sender' }] },
    priced: { rate: 1e6, key: 'global', cost: field<number>('cost'), tier: field<string>('tier') },
  },
});
const ONLY = { quota: false } as const;

@Injectable()
class Backend {
  @Protect('backend', {
    deadline: '1s',
    bulkhead: { maxInFlight: 1, maxQueue: 0 },
    maxValueBytes: 1e6,
    call: (value: unknown) => ({ value }),
    fallback: () => ({ text: 'ok' }),
  })
  async ask(_value: unknown): Promise<object> {
    await Promise.resolve();
    return { text: 'ok' };
  }
}

const levels = (count: number): string => `${'['.repeat(count)}${']'.repeat(count)}`;
const DEEP = levels(10_000);
const NAMES =
  '{"__proto__":{"sender":"x"},"constructor":{"prototype":{"polluted":1}},"tier":"__proto__","app":"constructor","sender":"__proto__","cost":1}';

/** Payloads as JSON. */
const PAYLOADS: Readonly<Record<string, string>> = {
  null: 'null',
  'a list': '[[],null,{}]',
  'a number': '17',
  'a text': '"text"',
  'a long text': `"${'x'.repeat(90_000)}"`,
  'wrong types': '{"sender":{},"cost":"1","tier":7,"app":[]}',
  'no figures': '{"sender":null,"cost":null,"tier":null,"app":null}',
  'a negative cost': '{"sender":"a","cost":-1,"app":"orders"}',
  'a cost without end': '{"sender":"a","cost":1e999,"app":"orders"}',
  'names of prototypes': NAMES,
  'something to wait for': '{"sender":{"then":1},"then":{"then":2},"cost":{"then":3}}',
  '10,000 levels': DEEP,
  'levels in each field': `{"sender":${DEEP},"cost":${DEEP},"tier":${DEEP},"app":${DEEP}}`,
  'lone surrogates': '{"sender":"\\ud800","tier":"\\udfff","app":"\\ud800","cost":1}',
};

const REFUSED = ['COST_OUT_OF_RANGE', 'UNKNOWN_APP', 'UNKNOWN_LIMIT'];

describe.each(HTTP_WIRES)('on %s', (name) => {
  @Controller()
  class Orders {
    constructor(@Inject(Backend) private readonly backend: Backend) {}

    @All('keyed')
    @RateLimit('keyed', ONLY)
    keyed(): object {
      return { text: 'ok' };
    }

    @All('priced')
    @RateLimit('priced', ONLY)
    priced(): object {
      return { text: 'ok' };
    }

    @All('charged')
    @RateLimit()
    charged(): object {
      return { text: 'ok' };
    }

    @All('cached')
    @Degrade({ idempotent: true, vary: ['x-sender'] })
    cached(): object {
      return { text: 'ok' };
    }

    @All('principal')
    @Degrade({ idempotent: true, principal: field<string>('sender') })
    principal(): object {
      return { text: 'ok' };
    }

    @All('protected')
    protected(@Body() body: unknown): Promise<object> {
      return this.backend.ask(body);
    }
  }

  let wire: HttpWire;
  beforeAll(async () => {
    wire = await startHttpWire(name, {
      imports: [RateLimitModule.forRoot(limits('body.sender'))],
      controllers: [Orders],
      providers: [Backend],
    });
  });
  afterAll(() => wire.close());

  const PATHS = ['keyed', 'priced', 'charged', 'cached', 'principal', 'protected'];
  const json = { 'content-type': 'application/json' };
  const ask = async (path: string, question: HttpQuestion): Promise<void> => {
    const { status } = await wire.ask(path, question);
    expect([path.slice(0, 50), status < 500]).toEqual([path.slice(0, 50), true]);
  };

  it.each(Object.keys(PAYLOADS))('%s is answered', async (what) => {
    for (const path of PATHS) {
      await ask(`/${path}`, { method: 'POST', headers: json, body: PAYLOADS[what]! });
    }
  });

  it.each([
    ['names of prototypes', '?__proto__[sender]=1&constructor[prototype][x]=1&toString=1'],
    ['levels', `?${'a'.concat('[a]'.repeat(1000))}=1`],
    ['the same name a thousand times', `?${'a=1&'.repeat(1000)}`],
    ['bytes that are no text', '?a=%ff%00%fe&b=%'],
    ['13 KB', `?${'a'.repeat(13_000)}`],
  ])('a query of %s is answered', async (_, query) => {
    for (const path of PATHS) await ask(`/${path}${query}`, {});
  });

  it.each([
    ['an empty one', { 'x-sender': '' }],
    ['a name of prototypes', { 'x-sender': '__proto__', constructor: 'x', __proto__x: 'y' }],
    ['bytes', { 'x-sender': '\u00ff\u0080', cookie: '\u00ff=\u00ff; ;=' }],
    ['8 KB', { 'x-sender': 'x'.repeat(8000) }],
    ['a chain of proxies', { 'x-forwarded-for': ',,::,[::1]:x,'.repeat(300), forwarded: 'for=;' }],
    ['a foreign host', { 'x-forwarded-host': '\u00ff', 'accept-version': '[]' }],
  ])('headers with %s are answered', async (_, headers) => {
    for (const path of PATHS) await ask(`/${path}`, { headers });
  });

  it.each(['HEAD', 'OPTIONS', 'DELETE', 'PATCH', 'PUT'])(
    '%s without a body is answered',
    async (method) => {
      for (const path of PATHS) await ask(`/${path}`, { method });
    },
  );
});

describe('on GraphQL', () => {
  /** Any JSON, as applications with a scalar of that name take it. */
  @Scalar('Anything')
  class Anything implements CustomScalar<unknown, unknown> {
    parseValue = (value: unknown): unknown => value;
    serialize = (value: unknown): unknown => value;
    parseLiteral = (): unknown => 'literal';
  }

  @Resolver()
  class Orders {
    @Query(() => String, { nullable: true })
    @RateLimit('keyed', ONLY)
    keyed(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }

    @Query(() => String, { nullable: true })
    @RateLimit({ rate: 1e6, key: { param: 'variables.any' } }, ONLY)
    variable(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }

    @Query(() => String, { nullable: true })
    @RateLimit('priced', ONLY)
    priced(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }

    @Query(() => String, { nullable: true })
    @RateLimit()
    charged(@Args('any', { type: () => Anything, nullable: true }) _any?: unknown): string {
      return 'ok';
    }
  }

  let http: HttpApp;
  beforeAll(async () => {
    http = await startHttp('express', {
      imports: [
        RateLimitModule.forRoot(limits('args.any')),
        GraphQLModule.forRoot<ApolloDriverConfig>({
          driver: ApolloDriver,
          autoSchemaFile: true,
          allowBatchedHttpRequests: true,
          includeStacktraceInErrorResponses: false,
        }),
      ],
      providers: [Orders, Anything],
    });
  });
  afterAll(() => http.close());

  interface Result {
    readonly data?: unknown;
    readonly errors?: readonly { readonly extensions: { readonly code: string } }[];
  }

  const ask = async (body: string): Promise<Result> => {
    const headers = { 'content-type': 'application/json' };
    const response = await fetch(`${http.url}/graphql`, { method: 'POST', headers, body });
    expect(response.status).toBeLessThan(500);
    return (await response.json()) as Result;
  };
  const codesOf = ({ errors = [] }: Result): string[] =>
    errors.map(({ extensions }) => extensions.code);

  const FIELDS = ['keyed', 'variable', 'priced', 'charged'];
  const queryOf = (name: string): string =>
    `"query":"query($any: Anything) { ${name}(any: $any) }"`;

  it.each(Object.keys(PAYLOADS))('%s as a variable is answered', async (what) => {
    for (const name of FIELDS) {
      const result = await ask(`{${queryOf(name)},"variables":{"any":${PAYLOADS[what]}}}`);
      for (const code of codesOf(result)) expect(REFUSED).toContain(code);
    }
  });

  it.each([
    ['a list', '[]'],
    ['a text', '"any"'],
    ['a number', '7'],
    ['names of prototypes', NAMES],
    ['missing', 'null'],
  ])('variables that are %s are answered', async (_, variables) => {
    for (const name of FIELDS) {
      const result = await ask(`{${queryOf(name)},"variables":${variables}}`);
      for (const code of codesOf(result)) expect([...REFUSED, 'BAD_REQUEST']).toContain(code);
    }
  });

  it.each([
    ['a literal', '{"query":"{ keyed(any: {a: [1]}) priced(any: 7) charged(any: null) }"}'],
    [
      'a batch',
      `[${Array.from({ length: 20 }, () => '{"query":"{ keyed charged priced }"}').join()}]`,
    ],
    [
      'an alias of a prototype',
      '{"query":"{ __proto: keyed constructor: priced toString: charged }"}',
    ],
    ['no argument', '{"query":"{ keyed variable priced charged }"}'],
  ])('%s is answered', async (_, body) => {
    const answers: readonly Result[] = [await ask(body)].flat();
    for (const code of answers.flatMap(codesOf)) expect(REFUSED).toContain(code);
  });
});

describe('on gateways', () => {
  @WebSocketGateway()
  class Orders {
    constructor(@Inject(Backend) private readonly backend: Backend) {}

    @SubscribeMessage('keyed')
    @RateLimit('keyed', ONLY)
    keyed(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('placed')
    @RateLimit({ rate: 1e6, key: { param: 0 } }, ONLY)
    placed(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('priced')
    @RateLimit('priced', ONLY)
    priced(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('charged')
    @RateLimit()
    charged(): object {
      return { text: 'ok' };
    }

    @SubscribeMessage('protected')
    protected(_client: unknown, data: unknown): Promise<object> {
      return this.backend.ask(data);
    }
  }

  const modules = () => ({
    imports: [RateLimitModule.forRoot(limits('data.sender'))],
    providers: [Orders, Backend],
  });
  const EVENTS = ['keyed', 'placed', 'priced', 'charged', 'protected'];
  const isFine = (answer: unknown): boolean => {
    const { text, code, status } = (answer ?? {}) as Record<string, unknown>;
    return text === 'ok' || (status === 'error' && REFUSED.includes(code as string));
  };

  describe('of socket.io', () => {
    let http: HttpApp;
    let socket: Socket;
    beforeAll(async () => {
      http = await startHttp('express', modules());
      socket = io(http.url, { transports: ['websocket'], forceNew: true, reconnection: false });
      await until(() => socket.connected, { what: 'a connection' });
    });
    afterAll(async () => {
      socket.disconnect();
      await http.close();
    });

    // The client itself looks for bytes in what it sends, level by level.
    const sent = Object.entries(PAYLOADS).map(
      ([what, text]) => [what, text.replaceAll(DEEP, levels(1000))] as const,
    );

    it.each(sent)('%s is answered', async (_, text) => {
      const data = JSON.parse(text) as unknown;
      for (const event of EVENTS) {
        const answer: unknown = await socket.timeout(5000).emitWithAck(event, data);
        expect([event, answer, isFine(answer)]).toEqual([event, answer, true]);
      }
    });

    it.each<[string, unknown[]]>([
      ['nothing', []],
      ['several values', [null, { cost: 1 }, 7, 'x']],
      ['bytes', [Buffer.alloc(1000)]],
      [
        'bytes inside',
        [{ sender: Buffer.alloc(10), cost: Buffer.alloc(1), app: Buffer.from('x') }],
      ],
    ])('%s, with and without an acknowledgement, is answered', async (_, data) => {
      for (const event of EVENTS) {
        socket.emit(event, ...data);
        const answer: unknown = await socket.timeout(5000).emitWithAck(event, ...data);
        expect([event, answer, isFine(answer)]).toEqual([event, answer, true]);
      }
      expect(socket.connected).toBe(true);
    });
  });

  describe('of plain sockets', () => {
    let http: HttpApp;
    let adapter: PlainAdapter;
    beforeAll(async () => {
      http = await startHttp('express', modules(), (app) => {
        adapter = new PlainAdapter(app);
        app.useWebSocketAdapter(adapter);
      });
    });
    afterAll(() => http.close());

    it.each(Object.keys(PAYLOADS))('%s is answered', async (what) => {
      for (const event of EVENTS) {
        const socket = adapter.connect();
        socket.emit('message', `{"event":"${event}","data":${PAYLOADS[what]}}`);
        await until(() => socket.sent.length > 0, { what: `an answer to ${event}` });
        const [answer] = socket.sent as [{ event?: string; data?: unknown }];
        expect([event, isFine(answer.event === 'exception' ? answer.data : answer)]).toEqual([
          event,
          true,
        ]);
      }
    });
  });
});

describe('on gRPC', () => {
  const OK = { text: 'ok' };

  interface BareCall {
    on(event: 'data' | 'end', listener: () => void): this;
    write(answer: object): void;
    end(): void;
  }

  @Controller()
  class Orders {
    constructor(@Inject(Backend) private readonly backend: Backend) {}

    @GrpcMethod('Odd', 'Keyed')
    @RateLimit('keyed', ONLY)
    @RateLimit({ rate: 1e6, key: { param: 'value' } }, ONLY)
    @RateLimit({ rate: 1e6, key: { param: 'raw' } }, ONLY)
    @RateLimit({ rate: 1e6, key: { param: 'words.__proto__' } }, ONLY)
    @RateLimit({ rate: 1e6, key: { header: 'x-bytes-bin' } }, ONLY)
    keyed(): object {
      return OK;
    }

    @GrpcMethod('Odd', 'Priced')
    @RateLimit('priced', ONLY)
    priced(): object {
      return OK;
    }

    @GrpcMethod('Odd', 'Charged')
    @RateLimit()
    charged(): object {
      return OK;
    }

    @GrpcMethod('Odd', 'Cached')
    @Degrade({ idempotent: true, vary: ['x-sender', 'x-bytes-bin'] })
    cached(): object {
      return OK;
    }

    @GrpcMethod('Odd', 'Principal')
    @Degrade({ idempotent: true, principal: field<string>('sender') })
    principal(): object {
      return OK;
    }

    @GrpcMethod('Odd', 'Protected')
    protected(question: unknown): Promise<object> {
      return this.backend.ask(question);
    }

    @GrpcMethod('Odd', 'Listed')
    @RateLimit('priced', ONLY)
    listed(): object {
      return OK;
    }

    @GrpcStreamMethod('Odd', 'Collected')
    @RateLimit('keyed', ONLY)
    collected(questions: Observable<unknown>): Observable<object> {
      return questions.pipe(
        toArray(),
        map(() => OK),
      );
    }

    @GrpcStreamMethod('Odd', 'Chat')
    @RateLimit('priced')
    chat(questions: Observable<unknown>): Observable<object> {
      return questions.pipe(map(() => OK));
    }

    @GrpcStreamCall('Odd', 'BareChat')
    @RateLimit('priced')
    bareChat(call: BareCall): void {
      call.on('data', () => call.write(OK)).on('end', () => call.end());
    }

    @GrpcStreamCall('Odd', 'BareCollected')
    @RateLimit('keyed', ONLY)
    bareCollected(call: BareCall, callback: (error: null, answer: object) => void): void {
      call.on('data', () => undefined).on('end', () => callback(null, OK));
    }
  }

  const PROTO = join(root, 'test/transports/odd-requests.proto');
  let app: INestApplicationContext;
  let clients: GrpcClients;
  beforeAll(async () => {
    const url = `127.0.0.1:${await freePort()}`;
    app = await startService(
      {
        imports: [RateLimitModule.forRoot(limits('sender'))],
        controllers: [Orders],
        providers: [Backend],
      },
      'stand-alone',
      { transport: Transport.GRPC, options: { url, package: 'weir.test', protoPath: PROTO } },
    );
    clients = new GrpcClients(url, PROTO);
  });
  afterAll(async () => {
    clients.close();
    await app.close();
  });

  const METHODS = [
    ...['Keyed', 'Priced', 'Charged', 'Cached', 'Principal', 'Protected', 'Listed'],
    ...['Collected', 'Chat', 'BareChat', 'BareCollected'],
  ];
  /** Fine, or INVALID_ARGUMENT for what cannot be. */
  const ANSWERED = [0, 3];

  const nested = (count: number, wrap: (inner: unknown) => unknown, leaf: unknown): unknown => {
    let value = leaf;
    for (let i = 0; i < count; i++) value = wrap(value);
    return value;
  };
  const QUESTIONS: Readonly<Record<string, readonly unknown[]>> = {
    'no field': [{}],
    'many without a field': Array.from({ length: 30 }, () => ({})),
    'none in a stream': [],
    'a long text': [{ sender: 'x'.repeat(1e5), tier: 'x'.repeat(1e5), app: 'x'.repeat(1e5) }],
    '100,000 bytes': [{ raw: Buffer.alloc(1e5, 255) }],
    'costs that are no number': [NaN, Infinity, -1, -0, 1e300].map((cost) => ({
      cost,
      app: 'orders',
    })),
    'a number of 64 bits': [{ big: '9223372036854775807', sender: '\0' }],
    'names of prototypes': [
      {
        ...{ sender: '__proto__', tier: '__proto__', app: 'constructor', cost: 1 },
        ...{ words: JSON.parse('{"__proto__":"x","constructor":"y","then":"z"}') as object },
      },
    ],
    'a value of 30 levels': [
      { value: nested(30, (inner) => ({ listValue: { values: [inner] } }), { nullValue: 0 }) },
    ],
    'messages in each other': [{ inner: nested(90, (inner) => ({ inner }), { sender: 'deep' }) }],
    'anything, with no type': [{ any: { type_url: 'x'.repeat(10_000), value: Buffer.alloc(100) } }],
    'a list of 5,000': [{ list: Array.from({ length: 5000 }, String) }],
  };

  const ask = async (
    method: string,
    questions: readonly unknown[],
    headers: Record<string, string | Buffer> = {},
  ): Promise<void> => {
    const { code, details } = await clients.call(
      `Odd.${method}`,
      questions as GrpcMessage[],
      headers as Record<string, string>,
    );
    const told = [method, code, details];
    expect([...told, ANSWERED.includes(code)]).toEqual([...told, true]);
  };

  it.each(Object.keys(QUESTIONS))('%s is answered', async (what) => {
    for (const method of METHODS) await ask(method, QUESTIONS[what]!);
  });

  it.each<[string, Record<string, string | Buffer>]>([
    ['an empty one', { 'x-sender': '' }],
    ['names of prototypes', { 'x-sender': '__proto__', constructor: 'x', __proto__: 'y' }],
    ['bytes', { 'x-bytes-bin': Buffer.from([0xff, 0, 0xfe]) }],
    ['6 KB', { 'x-sender': 'x'.repeat(6000) }],
    ['what is not ours to read', { 'grpc-retry-pushback-ms': 'x', 'retry-after-ms': '-1' }],
  ])('headers with %s are answered', async (_, headers) => {
    for (const method of METHODS) await ask(method, [{}], headers);
  });
});
