import {
  All,
  Controller,
  Get,
  Head,
  Headers,
  HttpCode,
  Inject,
  Injectable,
  Module,
  Post,
  Req,
  Res,
  UseInterceptors,
  Version,
  VersioningType,
  type CallHandler,
  type ExecutionContext,
  type INestApplication,
  type ModuleMetadata,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import {
  Degradation,
  Degrade,
  RateLimitModule,
  type DegradeOptions,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { map, type Observable } from 'rxjs';
import { Redis } from 'ioredis';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import {
  HTTP_WIRES,
  startHttpWire,
  type HttpQuestion,
  type HttpWire,
} from '../support/nest/http-wires.js';
import { Warnings } from '../support/nest/warnings.js';

/** What callers try so that caches give them what is not theirs. */

let isDown = false;
const warnings = new Warnings();

/** The handler's answer, while it has one. */
function unlessDown<T>(answer: T): T {
  if (isDown) throw new Error('down');
  return answer;
}

interface AnyRequest {
  readonly headers: Record<string, string | undefined>;
  readonly body?: unknown;
}

class Account {
  constructor(
    readonly name: string,
    readonly password: string,
  ) {}

  toJSON(): object {
    return { name: this.name, password: this.password };
  }
}

class Accounts extends Array<Account> {}

class Instant extends Date {
  override toJSON(): string {
    return 'hunter2';
  }
}

const MARK = Symbol('secret');

/** Leaves the password out by the class, as serialisers do. */
@Injectable()
class Redactor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(map(redacted));
  }
}

function redacted(value: unknown): unknown {
  if (value instanceof Account) return { name: value.name };
  if (value instanceof Accounts) return { names: value.map(({ name }) => name) };
  if (value instanceof Instant) return 'some day';
  if (Array.isArray(value)) return value.map(redacted);
  if (value === null || typeof value !== 'object') return value;
  if (MARK in value) return {};
  if (value instanceof Date || value instanceof URL) return value;
  const fields = Object.entries(value).filter(([, is]) => typeof is !== 'function');
  return Object.fromEntries(fields.map(([name, is]) => [name, redacted(is)]));
}

const ada = (): Account => new Account('ada', 'hunter2');
const INSTANCES: Readonly<Record<string, () => unknown>> = {
  instance: ada,
  list: () => [ada()],
  field: () => ({ account: ada() }),
  'own list': () => Accounts.from([ada()]),
  'own date': () => ({ at: new Instant() }),
  'own toJSON': () => ({ toJSON: () => ({ password: 'hunter2' }), account: ada() }),
  marked: () => ({ [MARK]: true, password: 'hunter2' }),
};
const PLAIN: Readonly<Record<string, () => unknown>> = {
  values: () => ({ a: [1, 'b', null, true, { c: 1.5 }], d: undefined }),
  'no prototype': () => Object.assign(Object.create(null) as object, { a: 1 }),
  date: () => ({ at: new Date(0) }),
  url: () => ({ at: new URL('http://weir.test/') }),
};

@Controller()
class Pages {
  @Get('data')
  @UseInterceptors(Redactor)
  @Degrade({ vary: ['x-what'] })
  data(@Headers('x-what') what: string): unknown {
    return unlessDown({ ...INSTANCES, ...PLAIN }[what]!());
  }

  @Get('vary')
  @Degrade()
  vary(@Req() { headers }: AnyRequest, @Res({ passthrough: true }) response: AnyResponse): unknown {
    put(response, 'Vary', headers['x-vary']!);
    return unlessDown({ language: headers['x-lang'] });
  }

  @Get('vary-declared')
  @Degrade({ vary: ['X-Lang'] })
  varyDeclared(
    @Req() request: AnyRequest,
    @Res({ passthrough: true }) response: AnyResponse,
  ): unknown {
    return this.vary(request, response);
  }

  @Get('mine')
  @Degrade()
  mine(@Req() { headers }: AnyRequest): unknown {
    return unlessDown({ headers: Object.entries(headers) });
  }

  @Get('by-token')
  @Degrade({ vary: ['X-Auth-Token'] })
  byToken(@Headers('x-auth-token') token: string): unknown {
    return unlessDown({ token });
  }

  @Get('promised')
  @Degrade({ principal: (() => Promise.reject(new Error('bad token'))) as never })
  promised(): unknown {
    return unlessDown({ secret: 1 });
  }

  @Get('head')
  @Degrade()
  head(): unknown {
    return unlessDown({ method: 'get' });
  }

  @Head('own-head')
  @Degrade()
  ownHead(): unknown {
    return unlessDown({ method: 'head' });
  }

  @All('all')
  @Degrade({ idempotent: true })
  @HttpCode(200)
  all(@Req() { method }: { method: string }): unknown {
    return unlessDown({ method });
  }

  @Get('body')
  @Degrade()
  body(@Req() { body }: AnyRequest): unknown {
    return unlessDown({ body: body ?? 'none' });
  }

  @Post('search')
  @HttpCode(200)
  @Degrade({ idempotent: true })
  search(@Req() { body }: AnyRequest): unknown {
    return unlessDown({ body: body ?? 'none' });
  }

  @Get(['one', 'other'])
  @Degrade()
  severalPaths(@Req() { url }: { url: string }): unknown {
    return unlessDown({ url });
  }

  @Get('host')
  @Degrade({ vary: ['Host'] })
  host(@Headers() headers: Record<string, string>): unknown {
    return unlessDown({ host: headers['host'] ?? headers[':authority'] });
  }
}

interface AnyResponse {
  setHeader?(name: string, value: string): unknown;
  header?(name: string, value: string): unknown;
}

function put(response: AnyResponse, name: string, value: string): void {
  if (response.setHeader) response.setHeader(name, value);
  else response.header?.(name, value);
}

/** Two controllers of one name, as versions of an API have. */
function usersOf(path: string, data: string, version?: string): Type {
  @Controller(path)
  class Users {
    @Get('users')
    @Degrade()
    list(): object {
      return unlessDown({ data });
    }
  }
  if (version !== undefined) {
    const list = Object.getOwnPropertyDescriptor(Users.prototype, 'list')!;
    Version(version)(Users.prototype, 'list', list);
  }
  return Users;
}

const clock = new ManualClock();
const limits = (more: RateLimitModuleInput = {}) => RateLimitModule.forRoot({ clock, ...more });

beforeEach(() => {
  isDown = false;
  clock.advance(60 * 60_000);
});

describe.each(HTTP_WIRES)('hostile callers on %s', (name) => {
  let wire: HttpWire;

  beforeAll(async () => {
    const degradation = { credentialHeaders: ['X-Acme-Pass', 'x-corp-*'] };
    warnings.texts.length = 0;
    const imports = [limits({ degradation })];
    wire = await startHttpWire(name, { imports, controllers: [Pages] }, warnings.listen);
  });

  afterAll(async () => {
    await wire.close();
    warnings.stop();
  });

  const stored = (): number => wire.app.get(Degradation).stats().caches.stored;
  const ask = (path: string, question?: HttpQuestion) => wire.ask(path, question);
  async function whenDown(path: string, question?: HttpQuestion) {
    isDown = true;
    return wire.ask(path, question);
  }

  it.each(Object.keys(INSTANCES))('get no copy of an instance: %s', async (what) => {
    const normal = await ask('/data', { headers: { 'x-what': what } });
    expect(normal.text).not.toContain('hunter2');
    const before = stored();
    const degraded = await whenDown('/data', { headers: { 'x-what': what } });
    expect([degraded.status, stored()]).toEqual([500, before]);
  });

  it.each(Object.keys(PLAIN))('get a copy of plain data: %s', async (what) => {
    const normal = await ask('/data', { headers: { 'x-what': what } });
    const degraded = await whenDown('/data', { headers: { 'x-what': what } });
    expect([degraded.status, degraded.json]).toEqual([200, normal.json]);
  });

  it.each(['X-Lang', '*', 'Accept-Encoding, x-lang', 'Cookie'])(
    'get no answer that varies by something else: %s',
    async (vary) => {
      await ask('/vary', { headers: { 'x-vary': vary, 'x-lang': 'de' } });
      const other = await whenDown('/vary', { headers: { 'x-vary': vary, 'x-lang': 'en' } });
      expect([other.status, other.json]).not.toEqual([200, { language: 'de' }]);
      expect(other.status).toBe(500);
      const told = warnings.texts.filter((text) => text.includes('Pages.vary:'));
      expect(told).toHaveLength(1);
      expect(told[0]).toContain("'Vary");
    },
  );

  it.each(['Accept-Encoding', 'Origin, accept-encoding'])(
    'get one that varies by what is not in it: %s',
    async (vary) => {
      await ask('/vary', { headers: { 'x-vary': vary } });
      expect((await whenDown('/vary', { headers: { 'x-vary': vary } })).status).toBe(200);
    },
  );

  it('get one that varies by what was declared, each their own', async () => {
    const question = (lang: string) => ({ headers: { 'x-vary': 'x-lang', 'x-lang': lang } });
    await ask('/vary-declared', question('de'));
    expect((await whenDown('/vary-declared', question('en'))).status).toBe(500);
    expect((await ask('/vary-declared', question('de'))).json).toEqual({ language: 'de' });
  });

  it.each([
    ...['Authorization', 'Cookie', 'Proxy-Authorization', 'X-API-Key', 'Api-Key', 'X-Auth-Token'],
    ...['X-Access-Token', 'X-Session-Id', 'X-Amzn-Oidc-Identity', 'CF-Access-Jwt-Assertion'],
    ...['X-Forwarded-User', 'X-Forwarded-Email', 'X-Remote-User', 'X-MS-Client-Principal-Id'],
    ...['X-Goog-IAP-JWT-Assertion', 'X-Goog-Authenticated-User-Email', 'X-Forwarded-Access-Token'],
    ...['X-Forwarded-Client-Cert', 'X-User-Id', 'Private-Token', 'X-Acme-Pass', 'x-CORP-anything'],
  ])('get nothing of somebody who has shown %s', async (header) => {
    const before = stored();
    await ask('/mine', { headers: { [header.toLowerCase()]: 'alice' } });
    expect(stored()).toBe(before);
    const mallory = await whenDown('/mine', { headers: { [header.toLowerCase()]: 'mallory' } });
    expect([mallory.status, mallory.text]).toEqual([500, expect.not.stringContaining('alice')]);
    expect((await ask('/mine')).status).toBe(500);
  });

  it('get what everybody gets with headers that only look like credentials', async () => {
    const headers = { 'x-request-id': '1', 'x-forwarded-for': '1.2.3.4', 'x-acme-passes': '1' };
    await ask('/mine', { headers });
    expect((await whenDown('/mine')).status).toBe(200);
  });

  it('get their own by a token that the route varies by, and it is in no key', async () => {
    const question = (token: string) => ({ headers: { 'x-auth-token': token } });
    await ask('/by-token', question('alice'));
    expect((await whenDown('/by-token', question('mallory'))).status).toBe(500);
    expect((await ask('/by-token', question('alice'))).json).toEqual({ token: 'alice' });
    // A header that is no part of the key still marks the request as a caller's own.
    const both = { headers: { 'x-auth-token': 'alice', authorization: 'Bearer x' } };
    expect((await ask('/by-token', both)).status).toBe(500);
  });

  it('get nothing where the caller is only promised, and end nothing by a bad token', async () => {
    const before = stored();
    expect((await ask('/promised')).status).toBe(200);
    expect([(await whenDown('/promised')).status, stored()]).toEqual([500, before]);
  });

  it('get no answer of HEAD by GET', async () => {
    await ask('/head', { method: 'HEAD' });
    expect((await whenDown('/head')).status).toBe(500);
    isDown = false;
    await ask('/head');
    expect((await whenDown('/head')).json).toEqual({ method: 'get' });
    isDown = false;
    await ask('/own-head', { method: 'HEAD' });
    expect((await whenDown('/own-head', { method: 'HEAD' })).status).toBe(200);
  });

  it('get no answer of one verb by another where a handler has all', async () => {
    for (const method of ['GET', 'PUT']) await ask('/all', { method });
    isDown = true;
    for (const method of ['GET', 'PUT']) {
      expect((await ask('/all', { method })).json).toEqual({ method });
    }
    expect((await ask('/all', { method: 'DELETE' })).status).toBe(500);
  });

  it('get no answer to another body, whatever the verb', async () => {
    const json = { 'content-type': 'application/json' };
    const plain = { 'content-type': 'text/plain' };
    const form = { 'content-type': 'multipart/form-data; boundary=x' };
    const part = (text: string) =>
      `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--x--\r\n`;
    const asked = async (path: string, method: string, headers: typeof json, body: string) =>
      ask(path, { method, headers, body });
    for (const [path, method] of [
      ['/body', 'GET'],
      ['/search', 'POST'],
    ] as const) {
      isDown = false;
      await asked(path, method, json, '{"id":1}');
      await asked(path, method, plain, 'one');
      await asked(path, method, form, part('one'));
      isDown = true;
      expect((await asked(path, method, json, '{"id":2}')).status).toBe(500);
      expect((await asked(path, method, plain, 'two')).status).not.toBe(200);
      expect((await asked(path, method, form, part('two'))).status).not.toBe(200);
      expect((await ask(path, { method })).status).toBe(500);
    }
    expect((await asked('/search', 'POST', json, '{"id":1}')).json).toEqual({ body: { id: 1 } });
  });

  it('get no answer to a body that differs far below', async () => {
    const json = { 'content-type': 'application/json' };
    const deep = (leaf: number) => '{"a":'.repeat(30) + leaf + '}'.repeat(30);
    await ask('/search', { method: 'POST', headers: json, body: deep(1) });
    const other = await whenDown('/search', { method: 'POST', headers: json, body: deep(2) });
    expect(other.status).toBe(500);
    const same = await ask('/search', { method: 'POST', headers: json, body: deep(1) });
    expect(same.status).toBe(200);
  });

  it('get no answer of another path of the same handler', async () => {
    await ask('/one');
    expect((await whenDown('/other')).status).toBe(500);
    expect((await ask('/one')).json).toEqual({ url: '/one' });
  });

  it('get no answer of another host', async () => {
    const header = name === 'fastify on HTTP/2' ? ':authority' : 'host';
    const to = (host: string) => ({ headers: { [header]: host } });
    await ask('/host', to('a.weir.test'));
    expect((await whenDown('/host', to('b.weir.test'))).status).toBe(500);
    expect((await ask('/host', to('a.weir.test'))).json).toEqual({ host: 'a.weir.test' });
  });
});

describe('an answer on Redis', () => {
  let redis: RedisProcess;
  let client: Redis;
  const wires: HttpWire[] = [];

  beforeAll(async () => {
    redis = await startRedis();
    client = new Redis(redis.adminUrl);
  });

  afterAll(async () => {
    client.disconnect();
    await stopAll();
  });

  beforeEach(() => client.flushall());
  afterEach(() => Promise.all(wires.splice(0).map((wire) => wire.close())));

  async function start(
    metadata: ModuleMetadata,
    options: RateLimitModuleInput = {},
    prepare?: (app: INestApplication) => void,
  ): Promise<HttpWire> {
    const store = { type: 'redis', url: redis.url } as const;
    const imports = [...(metadata.imports ?? []), limits({ store, ...options })];
    const wire = await startHttpWire('express', { ...metadata, imports }, prepare);
    wires.push(wire);
    return wire;
  }

  /** Asks until so many answers are there in all, as they are written without being waited for. */
  const isStored = (answers: number) =>
    until(async () => (await client.keys('weir:answer:*')).length === answers);

  /** What one gets that has nothing in the process and whose handler is down. */
  async function whenDown({ ask }: HttpWire, path: string, question?: HttpQuestion) {
    isDown = true;
    return until(async () => {
      const reply = await ask(path, question);
      return reply.headers['x-degraded'] !== undefined || reply.status === 500 ? reply : undefined;
    });
  }

  it('is not given by another service with a route of the same name', async () => {
    const [inner, outer] = [usersOf('', 'internal'), usersOf('', 'public')];
    const one = await start({ controllers: [inner] }, { service: 'inner' });
    const other = await start({ controllers: [outer] }, { service: 'outer' });
    await one.ask('/users');
    await isStored(1);
    expect((await whenDown(other, '/users')).status).toBe(500);
    const twin = await start({ controllers: [inner] }, { service: 'inner' });
    expect((await whenDown(twin, '/users')).json).toEqual({ data: 'internal' });
  });

  it('has the app for the service, if that is a name', async () => {
    const quota = { apps: { a: { guaranteed: 100, burst: 100 }, b: { guaranteed: 1, burst: 1 } } };
    const controllers = [usersOf('', 'of a')];
    const one = await start({ controllers }, { quota, app: 'a' });
    const other = await start({ controllers }, { quota, app: 'b' });
    await one.ask('/users');
    await isStored(1);
    expect((await whenDown(other, '/users')).status).toBe(500);
  });

  it('needs a service, and the error says what to set', async () => {
    const controllers = [usersOf('', 'x')];
    // A connection of ours: an application that does not start closes none.
    const store = { type: 'redis', client } as const;
    await expect(start({ controllers }, { store })).rejects.toMatchObject({
      field: 'service',
      message: expect.stringMatching(/@Degrade on Users\.list.*option 'service'/s) as string,
    });
    const quota = { apps: { a: { guaranteed: 1, burst: 1 } } };
    const byRequest = { store, quota, app: () => 'a' };
    await expect(start({ controllers }, byRequest)).rejects.toMatchObject({ field: 'service' });
  });

  it.each<[string, DegradeOptions, MethodDecorator]>([
    ['keeps none', { level1: false }, Get('x')],
    ['only writes', { level4: 'Not now' }, Post('x')],
  ])('needs none where a route %s', async (_what, options, verb) => {
    class Shop {
      act(): object {
        return {};
      }
    }
    const descriptor = Object.getOwnPropertyDescriptor(Shop.prototype, 'act')!;
    Degrade(options)(Shop.prototype, 'act', descriptor);
    verb(Shop.prototype, 'act', descriptor);
    Controller()(Shop);
    await start({ controllers: [Shop] });
  });

  it('is that of its path, in whatever order controllers of one name are found', async () => {
    const [a, b] = [usersOf('a', 'of a'), usersOf('b', 'of b')];
    const one = await start({ controllers: [a, b] }, { service: 'shop' });
    for (const path of ['/a/users', '/b/users']) await one.ask(path);
    await isStored(2);
    const next = await start({ controllers: [b, a] }, { service: 'shop' });
    expect((await whenDown(next, '/a/users')).json).toEqual({ data: 'of a' });
    expect((await whenDown(next, '/b/users')).json).toEqual({ data: 'of b' });
  });

  it('is that of its version, if only a header tells which', async () => {
    const versions = (app: INestApplication): void =>
      void app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' });
    const [a, b] = [usersOf('', 'of 1', '1'), usersOf('', 'of 2', '2')];
    const one = await start({ controllers: [a, b] }, { service: 'shop' }, versions);
    for (const version of ['1', '2'])
      await one.ask('/users', { headers: { 'x-version': version } });
    await isStored(2);
    const next = await start({ controllers: [b, a] }, { service: 'shop' }, versions);
    for (const version of ['1', '2']) {
      const reply = await whenDown(next, '/users', { headers: { 'x-version': version } });
      expect(reply.json).toEqual({ data: `of ${version}` });
    }
  });

  it('is that of its module, where two have the same controller', async () => {
    @Controller()
    class Users {
      constructor(@Inject('DATA') private readonly data: string) {}

      @Get('users')
      @Degrade()
      list(): object {
        return unlessDown({ data: this.data });
      }
    }
    const moduleOf = (data: string): Type => {
      class Part {}
      const providers = [{ provide: 'DATA', useValue: data }];
      Module({ controllers: [Users], providers })(Part);
      return Part;
    };
    const [admin, open] = [moduleOf('of admins'), moduleOf('of all')];
    const routes = RouterModule.register([
      { path: 'admin', module: admin },
      { path: 'open', module: open },
    ]);
    const one = await start({ imports: [admin, open, routes] }, { service: 'shop' });
    await one.ask('/admin/users');
    await isStored(1);
    expect((await whenDown(one, '/open/users')).status).toBe(500);
    expect((await whenDown(one, '/admin/users')).json).toEqual({ data: 'of admins' });
    const degradation = one.app.get(Degradation);
    const load = () => ({ data: 'warm' });
    expect(() => degradation.warmUp('Users.list', [{}], load)).toThrow(/path/);
    await degradation.warmUp('Users.list', [{ path: '/open/users' }], load);
    expect((await whenDown(one, '/open/users')).json).toEqual({ data: 'warm' });
  });

  const nested = (sound: Envelope, name: string, times: number): string => {
    const head = JSON.stringify({ ...sound, body: undefined }).slice(0, -1);
    const deep = '[{"b":'.repeat(times / 2) + '1' + '}]'.repeat(times / 2);
    return name === 'body' ? `${head},"body":${deep}}` : `${head},"${name}":${deep},"body":{}}`;
  };

  it.each<[string, (sound: Envelope) => string]>([
    ['nested 100,000 deep', (sound) => nested(sound, 'body', 100_000)],
    ['nested 102 deep', (sound) => nested(sound, 'body', 102)],
    ['nested beside its body', (sound) => nested(sound, 'x', 100_000)],
    ['of the future', (sound) => JSON.stringify({ ...sound, t: sound.t + 6000 })],
    ['of the end of time', (sound) => JSON.stringify({ ...sound, t: 8.64e15 })],
    ['of the past', (sound) => JSON.stringify({ ...sound, t: sound.t - 31_000 })],
  ])('that somebody has put there is none: %s', async (_what, forge) => {
    @Controller()
    class Users {
      @Get('users')
      @Degrade({ level2: false, level4: { data: 'none' } })
      list(): object {
        return unlessDown({ data: 'x' });
      }
    }
    const one = await start({ controllers: [Users] }, { service: 'shop' });
    await one.ask('/users');
    await isStored(1);
    const [key] = await client.keys('weir:answer:*');
    const text = (await client.get(key!))!;
    // Whose answer it is stands before it.
    const mark = text.slice(0, text.indexOf('{'));
    const sound = JSON.parse(text.slice(mark.length)) as Envelope;
    await client.set(key!, mark + forge(sound));
    expect((await whenDown(one, '/users')).json).toEqual({ data: 'none' });
    for (const good of [
      { ...sound, t: sound.t + 1000 },
      { ...sound, body: { data: 'y' } },
    ]) {
      await client.set(key!, mark + JSON.stringify(good));
      expect((await whenDown(one, '/users')).json).toEqual(good.body);
    }
  });
});

interface Envelope {
  readonly t: number;
  readonly body: object;
}
