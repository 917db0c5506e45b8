import {
  Controller,
  Get,
  Inject,
  Module,
  Post,
  Version,
  VersioningType,
  type INestApplication,
  type ModuleMetadata,
  type Type,
} from '@nestjs/common';
import { RouterModule } from '@nestjs/core';
import { Degradation, Degrade, type DegradeOptions, type RateLimitModuleInput } from 'nestjs-weir';
import { Redis } from 'ioredis';
import { startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { startHttpWire, type HttpQuestion, type HttpWire } from '../support/nest/http-wires.js';
import { forgetAll, Handlers, limits } from './attacked-server.js';

// Answers on Redis are shared with processes of the same service, and with nobody else.

const handlers = new Handlers();

/** Two controllers of one name, as versions of an API have. */
function usersOf(path: string, data: string, version?: string): Type {
  @Controller(path)
  class Users {
    @Get('users')
    @Degrade()
    list(): object {
      return handlers.answer({ data });
    }
  }
  if (version !== undefined) {
    const list = Object.getOwnPropertyDescriptor(Users.prototype, 'list')!;
    Version(version)(Users.prototype, 'list', list);
  }
  return Users;
}

beforeEach(() => {
  handlers.isDown = false;
  forgetAll();
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

  /** The answer of a process that has none in its own cache and whose handler is down. */
  async function whenDown({ ask }: HttpWire, path: string, question?: HttpQuestion) {
    handlers.isDown = true;
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
      message: expect.stringMatching(
        /@Degrade on Users\.list.*option 'service'.*shared cache$/s,
      ) as string,
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
        return handlers.answer({ data: this.data });
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
        return handlers.answer({ data: 'x' });
      }
    }
    const one = await start({ controllers: [Users] }, { service: 'shop' });
    await one.ask('/users');
    await isStored(1);
    const [key] = await client.keys('weir:answer:*');
    const text = (await client.get(key!))!;
    // The mark of the owner stands before the answer.
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
