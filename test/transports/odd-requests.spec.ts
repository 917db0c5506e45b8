import { All, Body, Controller, Inject } from '@nestjs/common';
import { Degrade, RateLimit, RateLimitModule } from 'nestjs-weir';
import {
  HTTP_WIRES,
  startHttpWire,
  type HttpQuestion,
  type HttpWire,
} from '../support/nest/http-wires.js';
import { expectNoFaults, field, limits, ONLY, Backend, PAYLOADS } from './careless-app.js';

expectNoFaults();

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
