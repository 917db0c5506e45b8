import { type INestApplication, type Type } from '@nestjs/common';
import { type NestExpressApplication } from '@nestjs/platform-express';
import {
  ConnectedSocket,
  MessageBody,
  SubscribeMessage,
  WebSocketGateway,
  type OnGatewayConnection,
} from '@nestjs/websockets';
import {
  InvalidArgumentError,
  RateLimit,
  RateLimitDecision,
  RateLimiter,
  RateLimitModule,
  SkipRateLimit,
  type Decision,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { io, type Socket } from 'socket.io-client';
import { startRedis, stopAll, until } from '../support/index.js';
import { ManualClock } from '../support/manual-clock.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { PlainAdapter } from '../support/nest/plain-sockets.js';

interface ServerSocket {
  readonly handshake: { readonly auth: { readonly user?: string } };
  readonly data: { user?: { id: string } };
}

@WebSocketGateway()
class RoomsGateway implements OnGatewayConnection {
  handleConnection(client: Partial<ServerSocket>): void {
    const { user } = client.handshake?.auth ?? {};
    if (user !== undefined) client.data!.user = { id: user };
  }

  @SubscribeMessage('say')
  @RateLimit('two')
  say(@RateLimitDecision() { remaining }: Decision) {
    return { remaining };
  }

  /** The answer comes as an event, so that clients need not ask for it. */
  @SubscribeMessage('shout')
  @RateLimit('two')
  shout(@MessageBody() data: unknown, @RateLimitDecision() { remaining }: Decision) {
    return { event: 'shouted', data: { data, remaining } };
  }

  @SubscribeMessage('user')
  @RateLimit({ rate: 1, period: '1m', key: 'user' })
  user(): string {
    return 'ok';
  }

  @SubscribeMessage('room')
  @RateLimit({ rate: 1, period: '1m', key: { param: 'data.room' } })
  room(): string {
    return 'ok';
  }

  @SubscribeMessage('place')
  @RateLimit({ rate: 1, period: '1m', key: { param: 0 } })
  place(): string {
    return 'ok';
  }

  @SubscribeMessage('header')
  @RateLimit({ rate: 1, period: '1m', key: { header: 'X-Tenant' } })
  header(): string {
    return 'ok';
  }

  @SubscribeMessage('version')
  @RateLimit({ rate: 1, period: '1m', key: { param: 'handshake.query.version' } })
  version(): string {
    return 'ok';
  }

  @SubscribeMessage('shaped')
  @RateLimit({ algorithm: 'leaky-bucket', mode: 'shaper', rate: 1, period: '1m', burst: 3 })
  shaped(): string {
    return 'ok';
  }
}

@WebSocketGateway()
@RateLimit('two')
class LimitedGateway {
  @SubscribeMessage('both')
  @RateLimit('two')
  both(@RateLimitDecision() { remaining }: Decision, @ConnectedSocket() _socket: unknown) {
    return { remaining };
  }

  @SubscribeMessage('skipped')
  @SkipRateLimit()
  skipped(): string {
    return 'ok';
  }
}

@WebSocketGateway()
class QuotaGateway {
  @SubscribeMessage('spend')
  @RateLimit()
  spend(): string {
    return 'ok';
  }
}

const POLICIES = { two: { rate: 2, period: '1h' } } as const;
const DENIED = {
  status: 'error',
  code: 'RATE_LIMITED',
  message: 'Too many requests',
  policy: 'two',
  retryAfterMs: 1_800_000,
};

/** Everything that was started here, latest first. */
const toClose: (() => unknown)[] = [];

async function start(
  options: RateLimitModuleInput,
  prepare?: (app: INestApplication) => void,
  providers: Type[] = [RoomsGateway, LimitedGateway],
): Promise<HttpApp> {
  const http = await startHttp(
    'express',
    {
      imports: [RateLimitModule.forRoot({ policies: POLICIES, ...options })],
      providers,
    },
    prepare,
  );
  toClose.unshift(() => http.close());
  return http;
}

interface Client {
  readonly socket: Socket;
  /** Events that the server has sent, with their payloads. */
  readonly events: [string, unknown][];
  ask(event: string, ...data: unknown[]): Promise<unknown>;
}

async function connect(
  { url }: HttpApp,
  { user, headers, version }: { user?: string; headers?: object; version?: string } = {},
): Promise<Client> {
  const socket = io(url, {
    transports: ['websocket'],
    forceNew: true,
    reconnection: false,
    auth: user === undefined ? {} : { user },
    extraHeaders: (headers ?? {}) as Record<string, string>,
    query: version === undefined ? {} : { version },
  });
  toClose.unshift(() => socket.disconnect());
  const events: [string, unknown][] = [];
  socket.onAny((event: string, payload: unknown) => events.push([event, payload]));
  await until(() => socket.connected, { what: 'a connection' });
  return {
    socket,
    events,
    ask: (event, ...data) => socket.timeout(5_000).emitWithAck(event, ...data) as Promise<unknown>,
  };
}

afterEach(async () => {
  for (const close of toClose.splice(0)) await close();
});
afterAll(() => stopAll());

describe('messages of socket.io', () => {
  const clock = new ManualClock();

  it('answers a denied message by its acknowledgement, and by the event of exceptions', async () => {
    const client = await connect(await start({ clock }));
    expect(await client.ask('say', { a: 1 })).toEqual({ remaining: 1 });
    expect(await client.ask('say', 'text')).toEqual({ remaining: 0 });
    const denied = { ...DENIED, cause: { pattern: 'say' } };
    expect(await client.ask('say', { a: 1 })).toEqual(denied);
    expect(client.events).toEqual([['exception', denied]]);
    clock.advance(1_800_000);
    expect(await client.ask('say')).toEqual({ remaining: 0 });
  });

  it.each([[{ room: 'a' }], ['a word'], [7], [undefined]])(
    'tells the handler of %p its decision, and a client that wants no answer only of denials',
    async (data) => {
      const client = await connect(await start({ clock }));
      for (let count = 1; count <= 3; count++) {
        client.socket.emit('shout', data);
        await until(() => client.events.length === count, { what: `event ${count}` });
      }
      const heard = data === undefined ? {} : { data };
      expect(client.events).toEqual([
        ['shouted', expect.objectContaining({ ...heard, remaining: 1 })],
        ['shouted', expect.objectContaining({ ...heard, remaining: 0 })],
        ['exception', { ...DENIED, cause: { pattern: 'shout' } }],
      ]);
    },
  );

  it('charges once what stands on class and method, and leaves out what is skipped', async () => {
    const client = await connect(await start({ clock }));
    expect(await client.ask('both', 'text')).toEqual({ remaining: 1 });
    expect(await client.ask('both', {})).toEqual({ remaining: 0 });
    expect(await client.ask('skipped')).toBe('ok');
  });

  it('counts all connections of an address together', async () => {
    const http = await start({ clock });
    const [one, other] = [await connect(http), await connect(http)];
    expect(await one.ask('say')).toEqual({ remaining: 1 });
    expect(await other.ask('say')).toEqual({ remaining: 0 });
  });

  it('believes a proxy as far as Express does', async () => {
    const trusting = await start({ clock }, (app) =>
      (app as NestExpressApplication).set('trust proxy', 1),
    );
    for (const address of ['203.0.113.1', '203.0.113.2']) {
      const headers = { 'x-forwarded-for': `forged, ${address}` };
      const client = await connect(trusting, { headers });
      expect(await client.ask('say')).toEqual({ remaining: 1 });
    }
    const wary = await start({ clock });
    await (await connect(wary, { headers: { 'x-forwarded-for': '203.0.113.1' } })).ask('say');
    const client = await connect(wary, { headers: { 'x-forwarded-for': '203.0.113.2' } });
    expect(await client.ask('say')).toEqual({ remaining: 0 });
  });

  it('knows users, headers and the query of the handshake, and the payload', async () => {
    const http = await start({ clock });
    const ann = await connect(http, { user: 'ann', headers: { 'x-tenant': 'a' }, version: '1' });
    const bob = await connect(http, { user: 'bob', headers: { 'x-tenant': 'b' }, version: '2' });
    for (const event of ['user', 'header', 'version']) {
      expect(await ann.ask(event)).toBe('ok');
      expect(await bob.ask(event)).toBe('ok');
      expect(await ann.ask(event)).toMatchObject({ code: 'RATE_LIMITED' });
    }
    expect(await ann.ask('room', { room: 'a' })).toBe('ok');
    expect(await ann.ask('room', { room: 'b' })).toBe('ok');
    expect(await bob.ask('room', { room: 'a' })).toMatchObject({ code: 'RATE_LIMITED' });
    expect(await ann.ask('place', 'a')).toBe('ok');
    expect(await ann.ask('place', ['b', 'a'])).toBe('ok');
    expect(await bob.ask('place', 'b')).toMatchObject({ code: 'RATE_LIMITED' });
  });

  it('counts what a quota is spent on by event, and calls a lack of capacity overload', async () => {
    const quota = { cluster: { capacity: 10 }, apps: { chat: { guaranteed: 5, burst: 100 } } };
    const http = await start({ clock, app: 'chat', quota }, undefined, [QuotaGateway]);
    const spentOn: string[] = [];
    http.app.get(RateLimiter).on('consumption', ({ byMethod }) => {
      spentOn.push(...Object.keys(byMethod));
    });
    const client = await connect(http);
    const answers = [];
    for (let i = 0; i < 20; i++) answers.push(await client.ask('spend'));
    expect(answers[0]).toBe('ok');
    expect(answers[19]).toEqual({
      status: 'error',
      code: 'OVERLOADED',
      message: 'The service is at its capacity',
      retryAfterMs: expect.any(Number) as number,
      cause: { pattern: 'spend' },
    });
    clock.advance(2_000);
    expect(spentOn).toEqual(['spend']);
  });

  it('holds messages back, and gives their tokens back if the client goes', async () => {
    const http = await start({ clock });
    const [client, other] = [await connect(http), await connect(http)];
    expect(await client.ask('shaped')).toBe('ok');
    const timers = clock.pending;
    client.socket.emit('shaped');
    await until(() => clock.pending === timers + 1, { what: 'a message that is held back' });
    client.socket.disconnect();
    await until(() => clock.pending === timers, { what: 'nothing to be held back' });
    const answer = other.ask('shaped');
    await until(() => clock.pending === timers + 1, { what: 'a message that is held back' });
    clock.advance(60_000);
    expect(await answer).toBe('ok');
  });
});

describe('clients that do not stop', () => {
  it('are disconnected after so many denials in a row, and told why before', async () => {
    const clock = new ManualClock();
    const client = await connect(await start({ clock, websocket: { closeAfter: 2 } }));
    for (let i = 0; i < 3; i++) await client.ask('say');
    clock.advance(1_800_000);
    // The first passes, and with it the count begins anew.
    for (let i = 0; i < 2; i++) await client.ask('say');
    expect(client.socket.connected).toBe(true);
    await client.ask('say');
    await until(() => !client.socket.connected, { what: 'the end of the connection' });
    const exceptions = client.events.filter(([event]) => event === 'exception');
    expect(exceptions).toHaveLength(3);
  });

  it.each([0, 1.5, -1, NaN, '3'])('cannot be told from %p denials', async (closeAfter) => {
    const failed = start({ websocket: { closeAfter: closeAfter as number } });
    await expect(failed).rejects.toThrow(InvalidArgumentError);
  });
});

describe('messages of plain WebSockets', () => {
  const clock = new ManualClock();

  async function startPlain(options: RateLimitModuleInput = {}, providers?: Type[]) {
    let adapter: PlainAdapter | undefined;
    const useAdapter = (app: INestApplication): void => {
      app.useWebSocketAdapter((adapter = new PlainAdapter(app)));
    };
    await start({ clock, ...options }, useAdapter, providers);
    return adapter!;
  }

  it('are limited by address, and answered in the words of the adapter', async () => {
    const adapter = await startPlain();
    const [client, other] = [adapter.connect('192.0.2.1'), adapter.connect('192.0.2.2')];
    for (let i = 0; i < 3; i++) client.receive('shout', { i });
    other.receive('shout', { a: 1 });
    await until(() => client.sent.length === 3 && other.sent.length === 1);
    expect(client.sent).toContainEqual({
      event: 'exception',
      data: { ...DENIED, cause: { pattern: 'shout' } },
    });
    for (const i of [0, 1]) {
      const data = { data: { i }, remaining: 1 - i };
      expect(client.sent).toContainEqual({ event: 'shouted', data });
    }
    expect(other.sent).toEqual([{ event: 'shouted', data: { data: { a: 1 }, remaining: 1 } }]);
  });

  it('end with the code for clients that break the rules', async () => {
    const adapter = await startPlain({ websocket: { closeAfter: 1 } });
    const client = adapter.connect();
    for (let i = 0; i < 3; i++) client.receive('shout', 'text');
    await until(() => client.closedWith);
    expect(client.closedWith).toEqual([1008, 'RATE_LIMITED']);
    expect(client.sent).toHaveLength(3);
  });

  it('end with the code for later if it is not their fault', async () => {
    const quota = { cluster: { capacity: 10 }, apps: { chat: { guaranteed: 5, burst: 100 } } };
    const websocket = { closeAfter: 1 };
    const adapter = await startPlain({ app: 'chat', quota, websocket }, [QuotaGateway]);
    const client = adapter.connect();
    for (let i = 0; i < 20; i++) client.receive('spend', 'text');
    await until(() => client.closedWith);
    expect(client.closedWith).toEqual([1013, 'OVERLOADED']);
  });
});

describe('messages that Redis decides', () => {
  it('each has its own decision, however many are on their way', async () => {
    const redis = await startRedis();
    const http = await start({
      policies: { two: { ...POLICIES.two, sync: 'exact' } },
      store: { type: 'redis', url: redis.url, decisionTimeout: '5s' },
    });
    await http.app.get(RateLimiter).ready();
    const client = await connect(http);
    const events = ['say', 'both', 'say', 'both', 'say'];
    const answers = await Promise.all(events.map((event, i) => client.ask(event, { i })));
    expect(answers.filter((answer) => 'remaining' in (answer as object))).toEqual([
      { remaining: 1 },
      { remaining: 0 },
    ]);
    const codes = answers.map((answer) => (answer as { code?: string }).code);
    expect(codes.filter((code) => code === 'RATE_LIMITED')).toHaveLength(3);
  });
});
