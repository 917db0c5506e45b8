import { join } from 'node:path';
import { Controller, Inject, type INestApplicationContext } from '@nestjs/common';
import { GrpcMethod, GrpcStreamCall, GrpcStreamMethod, Transport } from '@nestjs/microservices';
import { Degrade, RateLimit, RateLimitModule } from 'nestjs-weir';
import { map, toArray, type Observable } from 'rxjs';
import { root } from '../setup/ensure-built.js';
import { freePort } from '../support/free-port.js';
import { GrpcClients, type GrpcMessage } from '../support/nest/grpc-clients.js';
import { startService } from '../support/nest/message-app.js';
import { expectNoFaults, field, limits, ONLY, Backend } from './careless-app.js';

expectNoFaults();

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
