import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Agent,
  createServer,
  request,
  type IncomingMessage,
  type RequestListener,
  type RequestOptions,
  type Server,
  type ServerResponse,
} from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect, type AddressInfo } from 'node:net';
import { Body, Controller, Get, Injectable, Module, Post, Sse, UseGuards } from '@nestjs/common';
import { type CanActivate, type INestApplication } from '@nestjs/common';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Subject, type Observable } from 'rxjs';
import {
  Overload,
  RateLimitConfig,
  RateLimitModule,
  type OverloadInput,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';
import { until } from '../support/until.js';

const storage = new AsyncLocalStorage<string>();

/** Requests that are under way, for the test to end. */
class Held {
  readonly names: string[] = [];
  readonly ends: (() => void)[] = [];
  readonly streams: Subject<{ data: string }>[] = [];
  guarded = 0;
  bodies = 0;

  async hold(name: string): Promise<string> {
    this.names.push(name);
    await new Promise<void>((resolve) => this.ends.push(resolve));
    return `${name} in ${storage.getStore() ?? 'nothing'}`;
  }

  end(): void {
    this.ends.shift()!();
  }
}

let held: Held;

@Injectable()
class Counting implements CanActivate {
  canActivate(): boolean {
    held.guarded++;
    return true;
  }
}

@Controller()
@UseGuards(Counting)
class Routes {
  @Get('hold')
  hold(): Promise<string> {
    return held.hold('hold');
  }

  @Get('quick')
  quick(): string {
    held.names.push('quick');
    return 'quick';
  }

  @Post('body')
  body(@Body() body: object): object {
    held.bodies++;
    return { length: JSON.stringify(body).length };
  }

  @Get('burn')
  burn(): string {
    const end = performance.now() + 4;
    while (performance.now() < end);
    return 'burnt';
  }

  @Get('broken')
  broken(): never {
    held.names.push('broken');
    throw new Error('broken');
  }

  @Get('rejected')
  rejected(): Promise<never> {
    held.names.push('rejected');
    return Promise.reject(new Error('rejected'));
  }

  @Get('health')
  health(): string {
    return 'well';
  }

  @Sse('events')
  events(): Observable<{ data: string }> {
    const stream = new Subject<{ data: string }>();
    held.streams.push(stream);
    return stream;
  }
}

interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  readonly isReused: boolean;
}

/** One request by Node's own client, which shows what fetch hides. */
function ask(url: string, options: RequestOptions = {}, body?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const sent = request(url, options, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (part: string) => (text += part));
      response.on('end', () => {
        const { statusCode: status = 0, headers } = response;
        resolve({ status, headers, body: text, isReused: sent.reusedSocket });
      });
    });
    sent.on('error', reject);
    if (options.headers !== undefined && 'expect' in options.headers) {
      sent.on('continue', () => sent.end(body));
      sent.flushHeaders();
    } else sent.end(body);
  });
}

/** One request may run, and one wait: so it is known what becomes of each, however slow the machine is. */
const NARROW: OverloadInput = { enabled: true, maxInFlight: 1, maxWaiting: 1 };

describe.each(PLATFORMS)('the line on %s', (platform) => {
  let server: HttpApp;
  let clock: ManualClock;
  let overload: Overload;

  beforeEach(() => {
    held = new Held();
    clock = new ManualClock();
  });
  afterEach(async () => {
    for (const end of held.ends) end();
    for (const stream of held.streams) stream.complete();
    await server.close();
  });

  async function start(
    changes: OverloadInput | undefined = {},
    module: RateLimitModuleInput = {},
    prepare?: (app: INestApplication) => void,
  ): Promise<void> {
    const options = { overload: { ...NARROW, ...changes }, clock, ...module };
    server = await startHttp(
      platform,
      { imports: [RateLimitModule.forRoot(options)], controllers: [Routes] },
      prepare,
    );
    overload = server.app.get(Overload);
  }

  const get = (path: string, headers = {}, options: RequestOptions = {}): Promise<Answer> =>
    ask(server.url + path, { headers, ...options });
  /** One runs, one waits. */
  const fill = async (headers = {}): Promise<Promise<Answer>[]> => {
    const all = [get('/hold', headers)];
    await until(() => held.names.length > 0);
    all.push(get('/quick', headers));
    await until(() => overload.stats().waiting === 1);
    return all;
  };

  it('runs what there is room for, lets the next wait, and refuses with 503', async () => {
    await start();
    const all = await fill();
    const { status, headers, body } = await get('/quick');
    expect([status, headers['retry-after'], headers['cache-control']]).toEqual([
      ...[503, '1', 'no-store'],
    ]);
    expect(headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(Object.keys(headers).filter((name) => name.startsWith('ratelimit'))).toEqual([]);
    expect(JSON.parse(body)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      ...{ status: 503, code: 'OVERLOADED', retryAfterMs: 1000 },
    });
    held.end();
    expect((await Promise.all(all)).map((one) => one.status)).toEqual([200, 200]);
    expect(overload.stats().byTier).toEqual({
      all: { ran: 1, waited: 1, full: 1, late: 0, gone: 0 },
    });
    expect(overload.stats()).toMatchObject({ waiting: 0, standing: false, factor: 1 });
    await until(() => overload.stats().inFlight === 0);
  });

  it('spreads what refusals name from retryAfter to twice as much', async () => {
    await start({ retryAfter: '2s' });
    void (await fill());
    const named = [];
    for (let i = 0; i < 4; i++) named.push((await get('/quick')).headers['retry-after']);
    expect(named).toEqual(['2', '3', '4', '2']);
  });

  it('refuses before guards and parsers, and reads no large body', async () => {
    await start();
    void (await fill());
    const before = held.guarded;
    const large = JSON.stringify({ text: 'x'.repeat(1_000_000) });
    const headers = { 'content-type': 'application/json' };
    const post = { method: 'POST', headers: { ...headers, 'content-length': large.length } };
    // Only a part is sent: an answer means that nobody waited for the rest.
    const answer = await new Promise<Answer>((resolve, reject) => {
      const sent = request(`${server.url}/body`, post, (response) => {
        response.resume().on('end', () => {
          resolve({
            ...{ status: response.statusCode!, headers: response.headers },
            body: '',
            isReused: false,
          });
          sent.destroy();
        });
      });
      sent.on('error', reject);
      sent.write(large.slice(0, 1000));
    });
    expect([answer.status, answer.headers.connection]).toEqual([503, 'close']);
    const chunked = await ask(
      `${server.url}/body`,
      { method: 'POST', headers: { ...headers, 'transfer-encoding': 'chunked' } },
      '{}',
    );
    expect([chunked.status, chunked.headers.connection]).toEqual([503, 'close']);
    expect([held.guarded, held.bodies]).toEqual([before, 0]);
  });

  it('keeps the connection after a refusal, also of a small body', async () => {
    await start();
    void (await fill());
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const length = { 'content-type': 'application/json', 'content-length': '2' };
    const answers = [
      await get('/quick', {}, { agent }),
      await ask(`${server.url}/body`, { agent, method: 'POST', headers: length }, '{}'),
      await get('/quick', {}, { agent, method: 'HEAD' }),
      await get('/quick', {}, { agent }),
    ];
    agent.destroy();
    expect(answers.map((one) => one.status)).toEqual([503, 503, 503, 503]);
    expect(answers.map((one) => one.isReused)).toEqual([false, true, true, true]);
    expect([answers[2]!.body, Number(answers[2]!.headers['content-length']) > 100]).toEqual([
      ...['', true],
    ]);
  });

  it('answers pipelined requests in their order', async () => {
    await start();
    const { hostname, port } = new URL(server.url);
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    const line = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    socket.write(line('/hold') + line('/quick') + line('/quick'));
    await until(() => overload.stats().byTier['all']!.full === 1);
    expect(text).toBe('');
    held.end();
    await until(() => (text.match(/HTTP\/1.1/g) ?? []).length === 3);
    socket.destroy();
    expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 503']);
  });

  it('refuses who asks before sending a body, and lets others send it', async () => {
    await start();
    const all = await fill();
    let hasContinued = false;
    const headers = { expect: '100-continue', 'content-type': 'application/json' };
    const refused = await new Promise<number>((resolve, reject) => {
      const sent = request(`${server.url}/body`, { method: 'POST', headers }, (response) => {
        resolve(response.statusCode!);
        sent.destroy();
      });
      sent.on('continue', () => (hasContinued = true)).on('error', reject);
      sent.flushHeaders();
    });
    expect([refused, hasContinued]).toEqual([503, false]);
    held.end();
    await Promise.all(all);
    const { status } = await ask(`${server.url}/body`, { method: 'POST', headers }, '{"a":1}');
    expect([status, held.bodies]).toEqual([201, 1]);
  });

  it('drops a caller that leaves while it waits', async () => {
    await start({ maxWaiting: 5 });
    const first = get('/hold');
    await until(() => held.names.length > 0);
    const leaving = new AbortController();
    const left = get('/quick', {}, { signal: leaving.signal }).catch(() => 'left');
    await until(() => overload.stats().waiting === 1);
    const connections = (): Promise<number> =>
      new Promise((resolve) =>
        (server.app.getHttpServer() as Server).getConnections((_, n) => resolve(n)),
      );
    leaving.abort();
    expect(await left).toBe('left');
    await until(async () => (await connections()) === 1);
    held.end();
    await first;
    await until(() => overload.stats().byTier['all']!.gone === 1);
    expect(held.names).toEqual(['hold']);
  });

  it('finds callers on new connections, of which Node accepts one a turn', async () => {
    // More than a second of work that is there at once: before, all of them ran, each alone in its turn.
    await start({ maxInFlight: undefined, maxWaiting: 1000 }, { clock: undefined });
    const { hostname, port } = new URL(server.url);
    const answered = Array.from({ length: 300 }, () => {
      const socket = connect(Number(port), hostname);
      socket.write('GET /burn HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
      return new Promise<string>((resolve, reject) => {
        socket.once('data', (chunk) => {
          socket.destroy();
          resolve(chunk.toString('latin1', 9, 12));
        });
        socket.on('error', reject);
      });
    });
    const statuses = await Promise.all(answered);
    const served = statuses.filter((status) => status === '200').length;
    expect(served).toBeGreaterThan(10);
    expect(served).toBeLessThan(150);
    expect(statuses.filter((status) => status === '503')).toHaveLength(300 - served);
  });

  it('goes on after handlers that throw, at once or after a wait', async () => {
    await start({ maxWaiting: 5 });
    expect((await get('/broken')).status).toBe(500);
    expect((await get('/rejected')).status).toBe(500);
    const first = get('/hold');
    await until(() => held.names.includes('hold'));
    const waiting = ['/broken', '/rejected', '/quick'].map((path) => get(path));
    await until(() => overload.stats().waiting === 3);
    held.end();
    expect((await first).status).toBe(200);
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect(statuses).toEqual([500, 500, 200]);
    await until(() => overload.stats().inFlight === 0);
    expect(overload.stats().byTier['all']).toMatchObject({ ran: 3, waited: 3, full: 0, late: 0 });
  });

  it('lets an error of a listener go where it went without the line, and serves the next', async () => {
    await start({}, {}, (app) => {
      const http = app.getHttpServer() as Server;
      http.prependListener('request', ({ url }: IncomingMessage) => {
        if (url === '/thrown') throw new Error('by a listener');
      });
    });
    const http = server.app.getHttpServer() as Server;
    const thrown: unknown[] = [];
    const emit = http.emit.bind(http) as (...args: unknown[]) => boolean;
    http.emit = (...args: unknown[]) => {
      try {
        return emit(...args);
      } catch (error) {
        thrown.push(error);
        (args[2] as ServerResponse).destroy();
        return true;
      }
    };
    await expect(get('/thrown')).rejects.toThrow();
    expect(thrown).toEqual([new Error('by a listener')]);
    await until(() => overload.stats().inFlight === 0);
    expect((await get('/quick')).status).toBe(200);
  });

  it('refuses who has waited too long', async () => {
    await start();
    const [first, second] = await fill();
    clock.advance(200);
    clock.advance(201);
    expect((await second!).status).toBe(503);
    held.end();
    expect((await first!).status).toBe(200);
    expect(overload.stats().byTier['all']).toMatchObject({ late: 1, ran: 1 });
  });

  it('does not count streams of events as requests under way', async () => {
    await start();
    const abort = new AbortController();
    const headers = { accept: 'text/event-stream' };
    for (let i = 1; i <= 2; i++) {
      void fetch(`${server.url}/events`, { headers, signal: abort.signal }).catch(() => {});
      await until(() => held.streams.length === i);
    }
    expect((await get('/quick')).status).toBe(200);
    abort.abort();
  });

  it('lets exempt paths pass, of GET and HEAD', async () => {
    await start({ isExempt: ({ headers }) => headers['x-probe'] === 'yes' });
    void (await fill());
    expect((await get('/health?x=1')).status).toBe(200);
    expect((await get('/health', {}, { method: 'HEAD' })).status).toBe(200);
    expect((await get('/quick', { 'x-probe': 'yes' })).status).toBe(200);
    expect((await get('/health', {}, { method: 'POST' })).status).toBe(503);
    expect(overload.stats().exempt).toBe(3);
  });

  it('has the headers of its own on refusals, so that browsers see them', async () => {
    await start({ headers: { 'Access-Control-Allow-Origin': 'https://shop.example' } });
    void (await fill());
    const { headers } = await get('/quick');
    expect(headers['access-control-allow-origin']).toBe('https://shop.example');
  });

  it('serves higher tiers first, whatever the order they came in', async () => {
    await start(
      { maxWaiting: 10, tiers: ['S', 'A', 'B', 'C'] },
      { tier: ({ headers }) => headers['x-tier'] as string | undefined },
    );
    const all = [get('/hold')];
    await until(() => held.names.length > 0);
    const order: string[] = [];
    for (const [i, tier] of ['C', 'B', 'S', ''].entries()) {
      const headers = tier === '' ? {} : { 'x-tier': tier };
      all.push(get('/quick', headers).then((answer) => (order.push(tier), answer)));
      await until(() => overload.stats().waiting === i + 1);
    }
    held.end();
    await Promise.all(all);
    expect(order).toEqual(['S', 'B', 'C', '']);
    expect(overload.stats().byTier['C']).toMatchObject({ ran: 1, waited: 2 });
  });

  it('runs each request in the context that it came with', async () => {
    await start({}, {}, (app) => {
      const http = app.getHttpServer() as Server;
      const emit = http.emit.bind(http) as (...args: unknown[]) => boolean;
      // As tracers do it.
      http.emit = (event: string, ...args: unknown[]) => {
        if (event !== 'request') return emit(event, ...args);
        const { headers } = args[0] as IncomingMessage;
        return storage.run(String(headers['x-name']), () => emit(event, ...args));
      };
    });
    const first = get('/hold', { 'x-name': 'first' });
    await until(() => held.names.length === 1);
    const second = get('/hold', { 'x-name': 'second' });
    await until(() => overload.stats().waiting === 1);
    held.end();
    await until(() => held.names.length === 2);
    held.end();
    expect((await first).body).toBe('hold in first');
    expect((await second).body).toBe('hold in second');
  });

  it('only counts in observe mode', async () => {
    await start({ mode: 'observe' });
    const first = get('/hold');
    await until(() => held.names.length > 0);
    const answers = await Promise.all([get('/quick'), get('/quick'), get('/quick')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    held.end();
    await first;
    expect(overload.stats().byTier['all']).toMatchObject({ ran: 4, full: 0 });
  });

  it('is switched on and off by the configuration, under load', async () => {
    await start({ enabled: false });
    const http = server.app.getHttpServer() as Server;
    const before = http.listeners('request');
    const config = server.app.get(RateLimitConfig);
    await config.update({ overload: { enabled: true } }, { by: 'test' });
    expect(http.listeners('request')).not.toEqual(before);
    const [, second] = await fill();
    expect((await get('/quick')).status).toBe(503);
    await config.update({ overload: { enabled: false } }, { by: 'test' });
    expect((await second!).status).toBe(200);
    expect((await get('/quick')).status).toBe(200);
    await config.update({ overload: { enabled: true } }, { by: 'test' });
    // The one that is held came before.
    await until(() => overload.stats().inFlight === 1);
    const waiting = get('/quick');
    await until(() => overload.stats().waiting === 1);
    held.end();
    expect((await waiting).status).toBe(200);
  });

  it('lets go of what waits when the application closes', async () => {
    await start();
    const [first, second] = await fill({ connection: 'close' });
    const closed = server.close();
    expect((await second!).status).toBe(200);
    held.end();
    await first;
    await closed;
  });

  it('says once that a later listener sees every request', async () => {
    const warnings = new Warnings();
    await start({}, {}, warnings.listen);
    const http = server.app.getHttpServer() as Server;
    let seen = 0;
    for (let i = 0; i < 2; i++) http.on('request', () => seen++);
    void (await fill());
    await get('/quick');
    warnings.stop();
    expect(seen).toBe(6);
    expect(warnings.texts.filter((text) => text.includes("'request'"))).toHaveLength(1);
  });

  it('is another for each of two applications in one process', async () => {
    await start();
    const other = await startHttp(platform, {
      imports: [RateLimitModule.forRoot({ overload: NARROW, clock })],
      controllers: [Routes],
    });
    const all = await fill();
    expect((await get('/quick')).status).toBe(503);
    expect((await other.get('/quick')).status).toBe(200);
    held.end();
    await Promise.all(all);
    await other.close();
  });

  it('touches nothing where it is not switched on', async () => {
    const plain = await startHttp(platform, { controllers: [Routes] });
    for (const module of [{}, { overload: {} }, { overload: { enabled: true }, enabled: false }]) {
      server = await startHttp(platform, {
        imports: [RateLimitModule.forRoot({ clock, ...module })],
        controllers: [Routes],
      });
      expect(listenersOf(server)).toEqual(listenersOf(plain));
      if (module.enabled === false) break;
      await server.close();
    }
    await plain.close();
  });
});

function listenersOf({ app }: HttpApp): Record<string, number> {
  const http = app.getHttpServer() as Server;
  return Object.fromEntries(
    http.eventNames().map((name) => [String(name), http.listenerCount(name)]),
  );
}

describe('the line of Fastify', () => {
  const platform: Platform = 'fastify';

  it('speaks HTTP/2 as well', async () => {
    held = new Held();
    const metadata = {
      imports: [RateLimitModule.forRoot({ overload: NARROW, clock: new ManualClock() })],
      controllers: [Routes],
    };
    const adapter = new FastifyAdapter({ http2: true } as object);
    const { app, url, close } = await startHttp(platform, metadata, undefined, adapter);
    const overload = app.get(Overload);
    const session = connectHttp2(url);
    const get = (path: string): Promise<[status: number | undefined, body: string]> =>
      new Promise((resolve, reject) => {
        const stream = session.request({ ':path': path });
        let [status, body]: [number | undefined, string] = [undefined, ''];
        stream.on('response', (headers) => (status = headers[':status']));
        stream.setEncoding('utf8').on('data', (part: string) => (body += part));
        stream.on('end', () => resolve([status, body])).on('error', reject);
      });
    const first = get('/hold');
    await until(() => held.names.length > 0);
    const second = get('/quick');
    await until(() => overload.stats().waiting === 1);
    const [status, body] = await get('/quick');
    expect([status, JSON.parse(body)]).toMatchObject([503, { code: 'OVERLOADED' }]);
    held.end();
    expect([(await first)[0], (await second)[0]]).toEqual([200, 200]);
    await until(() => overload.stats().inFlight === 0);
    session.destroy();
    await close();
  });

  it('stands also before requests that come by another way than its server', async () => {
    held = new Held();
    @Module({ imports: [RateLimitModule.forRoot({ overload: NARROW })], controllers: [Routes] })
    class AppModule {}
    const { app, url, close } = await startHttp(platform, { imports: [AppModule] });
    const fastify = app.getHttpAdapter().getInstance() as { routing: RequestListener };
    const overload = app.get(Overload);
    // As Fastify does it where `localhost` has two addresses.
    const second = createServer(fastify.routing);
    await new Promise<void>((resolve) => second.listen(0, '127.0.0.1', resolve));
    const { port } = second.address() as AddressInfo;
    const all = [ask(`http://127.0.0.1:${port}/hold`)];
    await until(() => held.names.length > 0);
    all.push(ask(`${url}/quick`));
    await until(() => overload.stats().waiting === 1);
    const refused = await ask(`http://127.0.0.1:${port}/quick`);
    expect([refused.status, JSON.parse(refused.body)]).toMatchObject([503, { code: 'OVERLOADED' }]);
    held.end();
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200]);
    second.close();
    second.closeAllConnections();
    await close();
  });
});
