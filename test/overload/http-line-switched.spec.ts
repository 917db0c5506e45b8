import { createServer, type RequestListener, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { Controller, Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { Overload, RateLimit, RateLimitConfig, RateLimitModule } from 'nestjs-weir';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';
import { until } from '../support/until.js';
import { ask, holdAnew, LineApp, NARROW, Routes } from './line-app.js';

describe.each(PLATFORMS)('the line, switched on and off, on %s', (platform) => {
  let line: LineApp;

  beforeEach(() => {
    line = new LineApp(platform);
  });
  afterEach(() => line.end());

  it('only counts in observe mode', async () => {
    await line.start({ mode: 'observe' });
    const first = line.get('/hold');
    await until(() => line.held.names.length > 0);
    const answers = await Promise.all([line.get('/quick'), line.get('/quick'), line.get('/quick')]);
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200]);
    line.held.end();
    await first;
    expect(line.overload.stats().byTier['all']).toMatchObject({ ran: 4, full: 0 });
  });

  it('is switched on and off by the configuration, under load', async () => {
    await line.start({ enabled: false });
    const http = line.server.app.getHttpServer() as Server;
    const before = http.listeners('request');
    const config = line.server.app.get(RateLimitConfig);
    await config.update({ overload: { enabled: true } }, { by: 'test' });
    expect(http.listeners('request')).not.toEqual(before);
    const [, second] = await line.fill();
    expect((await line.get('/quick')).status).toBe(503);
    await config.update({ overload: { enabled: false } }, { by: 'test' });
    expect((await second!).status).toBe(200);
    expect((await line.get('/quick')).status).toBe(200);
    await config.update({ overload: { enabled: true } }, { by: 'test' });
    // The one that is held came before.
    await until(() => line.overload.stats().inFlight === 1);
    const waiting = line.get('/quick');
    await until(() => line.overload.stats().waiting === 1);
    line.held.end();
    expect((await waiting).status).toBe(200);
  });

  it('lets go of what waits when the application closes', async () => {
    await line.start();
    const [first, second] = await line.fill({ connection: 'close' });
    const closed = line.server.close();
    expect((await second!).status).toBe(200);
    line.held.end();
    await first;
    await closed;
  });

  it('says once that a later listener sees every request', async () => {
    const warnings = new Warnings();
    await line.start({}, {}, warnings.listen);
    const http = line.server.app.getHttpServer() as Server;
    let seen = 0;
    for (let i = 0; i < 2; i++) http.on('request', () => seen++);
    void (await line.fill());
    await line.get('/quick');
    warnings.stop();
    expect(seen).toBe(6);
    expect(warnings.texts.filter((text) => text.includes("'request'"))).toHaveLength(1);
  });

  it('is another for each of two applications in one process', async () => {
    await line.start();
    const other = await startHttp(platform, {
      imports: [RateLimitModule.forRoot({ overload: NARROW, clock: line.clock })],
      controllers: [Routes],
    });
    const all = await line.fill();
    expect((await line.get('/quick')).status).toBe(503);
    expect((await other.get('/quick')).status).toBe(200);
    line.held.end();
    await Promise.all(all);
    await other.close();
  });

  it('touches nothing where it is not switched on', async () => {
    const plain = await startHttp(platform, { controllers: [Routes] });
    for (const module of [{}, { overload: {} }, { overload: { enabled: true }, enabled: false }]) {
      line.server = await startHttp(platform, {
        imports: [RateLimitModule.forRoot({ clock: line.clock, ...module })],
        controllers: [Routes],
      });
      expect(listenersOf(line.server)).toEqual(listenersOf(plain));
      if (module.enabled === false) break;
      await line.server.close();
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
  it('stands also before requests that come by another way than its server', async () => {
    const held = holdAnew();
    @Module({ imports: [RateLimitModule.forRoot({ overload: NARROW })], controllers: [Routes] })
    class AppModule {}
    const { app, url, close } = await startHttp('fastify', { imports: [AppModule] });
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

describe('the line of an application without a server', () => {
  it('says once that there is nothing to stand at', async () => {
    class Calls {
      @MessagePattern('call')
      @RateLimit({ rate: 10, key: 'global' })
      call(): string {
        return 'done';
      }
    }
    Controller()(Calls);
    const told = async (controllers: Type[]): Promise<number> => {
      const warnings = new Warnings();
      warnings.start();
      class AppModule {}
      Module({ imports: [RateLimitModule.forRoot({ overload: { enabled: true } })], controllers })(
        AppModule,
      );
      const app = await NestFactory.createApplicationContext(AppModule);
      await app.get(RateLimitConfig).update({ overload: { retryAfter: '2s' } }, { by: 'test' });
      await app.close();
      warnings.stop();
      return warnings.texts.filter((text) => text.includes('neither a server of HTTP')).length;
    };
    expect([await told([]), await told([Calls])]).toEqual([1, 0]);
  });
});
