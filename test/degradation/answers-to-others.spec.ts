import { All, Controller, Get, Head, Headers, HttpCode, Post, Req } from '@nestjs/common';
import { Degrade } from 'nestjs-weir';
import { HTTP_WIRES } from '../support/nest/http-wires.js';
import { AttackedServer, forgetAll, Handlers, type AnyRequest } from './attacked-server.js';

// An answer to one question is given to no other, of another verb, body, path or host.

const handlers = new Handlers();

@Controller()
class Pages {
  @Get('head')
  @Degrade()
  head(): unknown {
    return handlers.answer({ method: 'get' });
  }

  @Head('own-head')
  @Degrade()
  ownHead(): unknown {
    return handlers.answer({ method: 'head' });
  }

  @All('all')
  @Degrade({ idempotent: true })
  @HttpCode(200)
  all(@Req() { method }: { method: string }): unknown {
    return handlers.answer({ method });
  }

  @Get('body')
  @Degrade()
  body(@Req() { body }: AnyRequest): unknown {
    return handlers.answer({ body: body ?? 'none' });
  }

  @Post('search')
  @HttpCode(200)
  @Degrade({ idempotent: true })
  search(@Req() { body }: AnyRequest): unknown {
    return handlers.answer({ body: body ?? 'none' });
  }

  @Get(['one', 'other'])
  @Degrade()
  severalPaths(@Req() { url }: { url: string }): unknown {
    return handlers.answer({ url });
  }

  @Get('host')
  @Degrade({ vary: ['Host'] })
  host(@Headers() headers: Record<string, string>): unknown {
    return handlers.answer({ host: headers['host'] ?? headers[':authority'] });
  }
}

beforeEach(() => {
  handlers.isDown = false;
  forgetAll();
});

describe.each(HTTP_WIRES)('hostile callers on %s', (name) => {
  let server: AttackedServer;

  beforeAll(async () => {
    server = await AttackedServer.start(name, Pages, handlers);
  });

  afterAll(() => server.close());

  it('get no answer of HEAD by GET', async () => {
    await server.ask('/head', { method: 'HEAD' });
    expect((await server.whenDown('/head')).status).toBe(500);
    handlers.isDown = false;
    await server.ask('/head');
    expect((await server.whenDown('/head')).json).toEqual({ method: 'get' });
    handlers.isDown = false;
    await server.ask('/own-head', { method: 'HEAD' });
    expect((await server.whenDown('/own-head', { method: 'HEAD' })).status).toBe(200);
  });

  it('get no answer of one verb by another where a handler has all', async () => {
    for (const method of ['GET', 'PUT']) await server.ask('/all', { method });
    handlers.isDown = true;
    for (const method of ['GET', 'PUT']) {
      expect((await server.ask('/all', { method })).json).toEqual({ method });
    }
    expect((await server.ask('/all', { method: 'DELETE' })).status).toBe(500);
  });

  it('get no answer to another body, whatever the verb', async () => {
    const json = { 'content-type': 'application/json' };
    const plain = { 'content-type': 'text/plain' };
    const form = { 'content-type': 'multipart/form-data; boundary=x' };
    const part = (text: string) =>
      `--x\r\nContent-Disposition: form-data; name="a"\r\n\r\n${text}\r\n--x--\r\n`;
    const asked = async (path: string, method: string, headers: typeof json, body: string) =>
      server.ask(path, { method, headers, body });
    for (const [path, method] of [
      ['/body', 'GET'],
      ['/search', 'POST'],
    ] as const) {
      handlers.isDown = false;
      await asked(path, method, json, '{"id":1}');
      await asked(path, method, plain, 'one');
      await asked(path, method, form, part('one'));
      handlers.isDown = true;
      expect((await asked(path, method, json, '{"id":2}')).status).toBe(500);
      expect((await asked(path, method, plain, 'two')).status).not.toBe(200);
      expect((await asked(path, method, form, part('two'))).status).not.toBe(200);
      expect((await server.ask(path, { method })).status).toBe(500);
    }
    expect((await asked('/search', 'POST', json, '{"id":1}')).json).toEqual({ body: { id: 1 } });
  });

  it('get no answer to a body that differs far below', async () => {
    const json = { 'content-type': 'application/json' };
    const deep = (leaf: number) => '{"a":'.repeat(30) + leaf + '}'.repeat(30);
    await server.ask('/search', { method: 'POST', headers: json, body: deep(1) });
    const other = await server.whenDown('/search', {
      method: 'POST',
      headers: json,
      body: deep(2),
    });
    expect(other.status).toBe(500);
    const same = await server.ask('/search', { method: 'POST', headers: json, body: deep(1) });
    expect(same.status).toBe(200);
  });

  it('get no answer of another path of the same handler', async () => {
    await server.ask('/one');
    expect((await server.whenDown('/other')).status).toBe(500);
    expect((await server.ask('/one')).json).toEqual({ url: '/one' });
  });

  it('get no answer of another host', async () => {
    const header = name === 'fastify on HTTP/2' ? ':authority' : 'host';
    const to = (host: string) => ({ headers: { [header]: host } });
    await server.ask('/host', to('a.weir.test'));
    expect((await server.whenDown('/host', to('b.weir.test'))).status).toBe(500);
    expect((await server.ask('/host', to('a.weir.test'))).json).toEqual({ host: 'a.weir.test' });
  });
});
