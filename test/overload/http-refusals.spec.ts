import { Agent, request } from 'node:http';
import { connect as connectHttp2 } from 'node:http2';
import { connect } from 'node:net';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Overload, RateLimitModule } from 'nestjs-weir';
import { ManualClock } from '../support/manual-clock.js';
import { PLATFORMS, startHttp } from '../support/nest/http-apps.js';
import { until } from '../support/until.js';
import { ask, holdAnew, LineApp, NARROW, Routes, type Answer } from './line-app.js';

describe.each(PLATFORMS)('a refusal by the line on %s', (platform) => {
  let line: LineApp;

  beforeEach(() => {
    line = new LineApp(platform);
  });
  afterEach(() => line.end());

  it('spreads what refusals name from retryAfter to twice as much', async () => {
    await line.start({ retryAfter: '2s' });
    void (await line.fill());
    const named = [];
    for (let i = 0; i < 4; i++) named.push((await line.get('/quick')).headers['retry-after']);
    expect(named).toEqual(['2', '3', '4', '2']);
  });

  it('refuses before guards and parsers, and reads no large body', async () => {
    await line.start();
    void (await line.fill());
    const before = line.held.guarded;
    const large = JSON.stringify({ text: 'x'.repeat(1_000_000) });
    const headers = { 'content-type': 'application/json' };
    const post = { method: 'POST', headers: { ...headers, 'content-length': large.length } };
    // Only a part is sent: an answer means that nobody waited for the rest.
    const answer = await new Promise<Answer>((resolve, reject) => {
      const sent = request(`${line.server.url}/body`, post, (response) => {
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
      `${line.server.url}/body`,
      { method: 'POST', headers: { ...headers, 'transfer-encoding': 'chunked' } },
      '{}',
    );
    expect([chunked.status, chunked.headers.connection]).toEqual([503, 'close']);
    expect([line.held.guarded, line.held.bodies]).toEqual([before, 0]);
  });

  it('keeps the connection after a refusal, also of a small body', async () => {
    await line.start();
    void (await line.fill());
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    const length = { 'content-type': 'application/json', 'content-length': '2' };
    const answers = [
      await line.get('/quick', {}, { agent }),
      await ask(`${line.server.url}/body`, { agent, method: 'POST', headers: length }, '{}'),
      await line.get('/quick', {}, { agent, method: 'HEAD' }),
      await line.get('/quick', {}, { agent }),
    ];
    agent.destroy();
    expect(answers.map((one) => one.status)).toEqual([503, 503, 503, 503]);
    expect(answers.map((one) => one.isReused)).toEqual([false, true, true, true]);
    expect([answers[2]!.body, Number(answers[2]!.headers['content-length']) > 100]).toEqual([
      ...['', true],
    ]);
  });

  it('answers pipelined requests in their order', async () => {
    await line.start();
    const { hostname, port } = new URL(line.server.url);
    const socket = connect(Number(port), hostname);
    let text = '';
    socket.setEncoding('utf8').on('data', (part: string) => (text += part));
    const lineOf = (path: string): string => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
    socket.write(lineOf('/hold') + lineOf('/quick') + lineOf('/quick'));
    await until(() => line.overload.stats().byTier['all']!.full === 1);
    expect(text).toBe('');
    line.held.end();
    await until(() => (text.match(/HTTP\/1.1/g) ?? []).length === 3);
    socket.destroy();
    expect(text.match(/HTTP\/1.1 \d+/g)).toEqual(['HTTP/1.1 200', 'HTTP/1.1 200', 'HTTP/1.1 503']);
  });

  it('refuses who asks before sending a body, and lets others send it', async () => {
    await line.start();
    const all = await line.fill();
    let hasContinued = false;
    const headers = { expect: '100-continue', 'content-type': 'application/json' };
    const refused = await new Promise<number>((resolve, reject) => {
      const sent = request(`${line.server.url}/body`, { method: 'POST', headers }, (response) => {
        resolve(response.statusCode!);
        sent.destroy();
      });
      sent.on('continue', () => (hasContinued = true)).on('error', reject);
      sent.flushHeaders();
    });
    expect([refused, hasContinued]).toEqual([503, false]);
    line.held.end();
    await Promise.all(all);
    const { status } = await ask(`${line.server.url}/body`, { method: 'POST', headers }, '{"a":1}');
    expect([status, line.held.bodies]).toEqual([201, 1]);
  });

  it('has the headers of its own on refusals, so that browsers see them', async () => {
    await line.start({ headers: { 'Access-Control-Allow-Origin': 'https://shop.example' } });
    void (await line.fill());
    const { headers } = await line.get('/quick');
    expect(headers['access-control-allow-origin']).toBe('https://shop.example');
  });
});

describe('a refusal by the line of Fastify', () => {
  it('speaks HTTP/2 as well', async () => {
    const held = holdAnew();
    const metadata = {
      imports: [RateLimitModule.forRoot({ overload: NARROW, clock: new ManualClock() })],
      controllers: [Routes],
    };
    const adapter = new FastifyAdapter({ http2: true } as object);
    const { app, url, close } = await startHttp('fastify', metadata, undefined, adapter);
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
});
