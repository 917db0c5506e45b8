import { type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { PLATFORMS } from '../support/nest/http-apps.js';
import { until } from '../support/until.js';
import { LineApp, storage } from './line-app.js';

describe.each(PLATFORMS)('the line on %s', (platform) => {
  let line: LineApp;

  beforeEach(() => {
    line = new LineApp(platform);
  });
  afterEach(() => line.end());

  it('runs what there is room for, lets the next wait, and refuses with 503', async () => {
    await line.start();
    const all = await line.fill();
    const { status, headers, body } = await line.get('/quick');
    expect([status, headers['retry-after'], headers['cache-control']]).toEqual([
      ...[503, '1', 'no-store'],
    ]);
    expect(headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(Object.keys(headers).filter((name) => name.startsWith('ratelimit'))).toEqual([]);
    expect(JSON.parse(body)).toMatchObject({
      type: 'https://iana.org/assignments/http-problem-types#temporary-reduced-capacity',
      ...{ status: 503, code: 'OVERLOADED', retryAfterMs: 1000 },
    });
    line.held.end();
    expect((await Promise.all(all)).map((one) => one.status)).toEqual([200, 200]);
    expect(line.overload.stats().byTier).toEqual({
      all: { ran: 1, waited: 1, full: 1, late: 0, gone: 0 },
    });
    expect(line.overload.stats()).toMatchObject({ waiting: 0, standing: false, factor: 1 });
    await until(() => line.overload.stats().inFlight === 0);
  });

  it('drops a caller that leaves while it waits', async () => {
    await line.start({ maxWaiting: 5 });
    const first = line.get('/hold');
    await until(() => line.held.names.length > 0);
    const leaving = new AbortController();
    const left = line.get('/quick', {}, { signal: leaving.signal }).catch(() => 'left');
    await until(() => line.overload.stats().waiting === 1);
    const connections = (): Promise<number> =>
      new Promise((resolve) =>
        (line.server.app.getHttpServer() as Server).getConnections((_, n) => resolve(n)),
      );
    leaving.abort();
    expect(await left).toBe('left');
    await until(async () => (await connections()) === 1);
    line.held.end();
    await first;
    await until(() => line.overload.stats().byTier['all']!.gone === 1);
    expect(line.held.names).toEqual(['hold']);
  });

  it('finds callers on new connections, of which Node accepts one a turn', async () => {
    // More than a second of work that is there at once: before, all of them ran, each alone in its turn.
    await line.start({ maxInFlight: undefined, maxWaiting: 1000 }, { clock: undefined });
    const { hostname, port } = new URL(line.server.url);
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
    await line.start({ maxWaiting: 5 });
    expect((await line.get('/broken')).status).toBe(500);
    expect((await line.get('/rejected')).status).toBe(500);
    const first = line.get('/hold');
    await until(() => line.held.names.includes('hold'));
    const waiting = ['/broken', '/rejected', '/quick'].map((path) => line.get(path));
    await until(() => line.overload.stats().waiting === 3);
    line.held.end();
    expect((await first).status).toBe(200);
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect(statuses).toEqual([500, 500, 200]);
    await until(() => line.overload.stats().inFlight === 0);
    expect(line.overload.stats().byTier['all']).toMatchObject({
      ran: 3,
      waited: 3,
      full: 0,
      late: 0,
    });
  });

  it('lets an error of a listener go where it went without the line, and serves the next', async () => {
    await line.start({}, {}, (app) => {
      const http = app.getHttpServer() as Server;
      http.prependListener('request', ({ url }: IncomingMessage) => {
        if (url === '/thrown') throw new Error('by a listener');
      });
    });
    const http = line.server.app.getHttpServer() as Server;
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
    await expect(line.get('/thrown')).rejects.toThrow();
    expect(thrown).toEqual([new Error('by a listener')]);
    await until(() => line.overload.stats().inFlight === 0);
    expect((await line.get('/quick')).status).toBe(200);
  });

  it('refuses who has waited too long', async () => {
    await line.start();
    const [first, second] = await line.fill();
    line.clock.advance(200);
    line.clock.advance(201);
    expect((await second!).status).toBe(503);
    line.held.end();
    expect((await first!).status).toBe(200);
    expect(line.overload.stats().byTier['all']).toMatchObject({ late: 1, ran: 1 });
  });

  it('does not count streams of events as requests under way', async () => {
    await line.start();
    const abort = new AbortController();
    const headers = { accept: 'text/event-stream' };
    for (let i = 1; i <= 2; i++) {
      void fetch(`${line.server.url}/events`, { headers, signal: abort.signal }).catch(() => {});
      await until(() => line.held.streams.length === i);
    }
    expect((await line.get('/quick')).status).toBe(200);
    abort.abort();
  });

  it('lets exempt paths pass, of GET and HEAD', async () => {
    await line.start({ isExempt: ({ headers }) => headers['x-probe'] === 'yes' });
    void (await line.fill());
    expect((await line.get('/health?x=1')).status).toBe(200);
    expect((await line.get('/health', {}, { method: 'HEAD' })).status).toBe(200);
    expect((await line.get('/quick', { 'x-probe': 'yes' })).status).toBe(200);
    expect((await line.get('/health', {}, { method: 'POST' })).status).toBe(503);
    expect(line.overload.stats().exempt).toBe(3);
  });

  it('serves higher tiers first, whatever the order they came in', async () => {
    await line.start(
      { maxWaiting: 10, tiers: ['S', 'A', 'B', 'C'] },
      { tier: ({ headers }) => headers['x-tier'] as string | undefined },
    );
    const all = [line.get('/hold')];
    await until(() => line.held.names.length > 0);
    const order: string[] = [];
    for (const [i, tier] of ['C', 'B', 'S', ''].entries()) {
      const headers = tier === '' ? {} : { 'x-tier': tier };
      all.push(line.get('/quick', headers).then((answer) => (order.push(tier), answer)));
      await until(() => line.overload.stats().waiting === i + 1);
    }
    line.held.end();
    await Promise.all(all);
    expect(order).toEqual(['S', 'B', 'C', '']);
    expect(line.overload.stats().byTier['C']).toMatchObject({ ran: 1, waited: 2 });
  });

  it('runs each request in the context that it came with', async () => {
    await line.start({}, {}, (app) => {
      const http = app.getHttpServer() as Server;
      const emit = http.emit.bind(http) as (...args: unknown[]) => boolean;
      // As tracers do it.
      http.emit = (event: string, ...args: unknown[]) => {
        if (event !== 'request') return emit(event, ...args);
        const { headers } = args[0] as IncomingMessage;
        return storage.run(String(headers['x-name']), () => emit(event, ...args));
      };
    });
    const first = line.get('/hold', { 'x-name': 'first' });
    await until(() => line.held.names.length === 1);
    const second = line.get('/hold', { 'x-name': 'second' });
    await until(() => line.overload.stats().waiting === 1);
    line.held.end();
    await until(() => line.held.names.length === 2);
    line.held.end();
    expect((await first).body).toBe('hold in first');
    expect((await second).body).toBe('hold in second');
  });
});
