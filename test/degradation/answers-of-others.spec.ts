import { Controller, Get, Headers, Req, Res } from '@nestjs/common';
import { Degrade } from 'nestjs-weir';
import { HTTP_WIRES } from '../support/nest/http-wires.js';
import { Warnings } from '../support/nest/warnings.js';
import { AttackedServer, forgetAll, Handlers, type AnyRequest } from './attacked-server.js';

// An answer that was made for one caller is given to no other.

const handlers = new Handlers();
const warnings = new Warnings();

@Controller()
class Pages {
  @Get('vary')
  @Degrade()
  vary(@Req() { headers }: AnyRequest, @Res({ passthrough: true }) response: AnyResponse): unknown {
    put(response, 'Vary', headers['x-vary']!);
    return handlers.answer({ language: headers['x-lang'] });
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
    return handlers.answer({ headers: Object.entries(headers) });
  }

  @Get('by-token')
  @Degrade({ vary: ['X-Auth-Token'] })
  byToken(@Headers('x-auth-token') token: string): unknown {
    return handlers.answer({ token });
  }

  @Get('promised')
  @Degrade({ principal: (() => Promise.reject(new Error('bad token'))) as never })
  promised(): unknown {
    return handlers.answer({ secret: 1 });
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

beforeEach(() => {
  handlers.isDown = false;
  forgetAll();
});

describe.each(HTTP_WIRES)('hostile callers on %s', (name) => {
  let server: AttackedServer;

  beforeAll(async () => {
    const degradation = { credentialHeaders: ['X-Acme-Pass', 'x-corp-*'] };
    warnings.texts.length = 0;
    server = await AttackedServer.start(name, Pages, handlers, { degradation }, warnings.listen);
  });

  afterAll(async () => {
    await server.close();
    warnings.stop();
  });

  it.each(['X-Lang', '*', 'Accept-Encoding, x-lang', 'Cookie'])(
    'get no answer that varies by something else: %s',
    async (vary) => {
      await server.ask('/vary', { headers: { 'x-vary': vary, 'x-lang': 'de' } });
      const other = await server.whenDown('/vary', { headers: { 'x-vary': vary, 'x-lang': 'en' } });
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
      await server.ask('/vary', { headers: { 'x-vary': vary } });
      expect((await server.whenDown('/vary', { headers: { 'x-vary': vary } })).status).toBe(200);
    },
  );

  it('get one that varies by what was declared, each their own', async () => {
    const question = (lang: string) => ({ headers: { 'x-vary': 'x-lang', 'x-lang': lang } });
    await server.ask('/vary-declared', question('de'));
    expect((await server.whenDown('/vary-declared', question('en'))).status).toBe(500);
    expect((await server.ask('/vary-declared', question('de'))).json).toEqual({ language: 'de' });
  });

  it.each([
    ...['Authorization', 'Cookie', 'Proxy-Authorization', 'X-API-Key', 'Api-Key', 'X-Auth-Token'],
    ...['X-Access-Token', 'X-Session-Id', 'X-Amzn-Oidc-Identity', 'CF-Access-Jwt-Assertion'],
    ...['X-Forwarded-User', 'X-Forwarded-Email', 'X-Remote-User', 'X-MS-Client-Principal-Id'],
    ...['X-Goog-IAP-JWT-Assertion', 'X-Goog-Authenticated-User-Email', 'X-Forwarded-Access-Token'],
    ...['X-Forwarded-Client-Cert', 'X-User-Id', 'Private-Token', 'X-Acme-Pass', 'x-CORP-anything'],
  ])('get nothing of somebody who has shown %s', async (header) => {
    const before = server.stored();
    await server.ask('/mine', { headers: { [header.toLowerCase()]: 'alice' } });
    expect(server.stored()).toBe(before);
    const mallory = await server.whenDown('/mine', {
      headers: { [header.toLowerCase()]: 'mallory' },
    });
    expect([mallory.status, mallory.text]).toEqual([500, expect.not.stringContaining('alice')]);
    expect((await server.ask('/mine')).status).toBe(500);
  });

  it('put off no answer to callers without credentials by asking the same first', async () => {
    const question = '/mine?asked=before';
    await server.ask(question, { headers: { authorization: 'mallory' } });
    await server.ask(question);
    const alice = await server.whenDown(question);
    expect([alice.status, alice.text]).toEqual([200, expect.not.stringContaining('mallory')]);
  });

  it('get what everybody gets with headers that only look like credentials', async () => {
    const headers = { 'x-request-id': '1', 'x-forwarded-for': '1.2.3.4', 'x-acme-passes': '1' };
    await server.ask('/mine', { headers });
    expect((await server.whenDown('/mine')).status).toBe(200);
  });

  it('get their own by a token that the route varies by, and it is in no key', async () => {
    const question = (token: string) => ({ headers: { 'x-auth-token': token } });
    await server.ask('/by-token', question('alice'));
    expect((await server.whenDown('/by-token', question('mallory'))).status).toBe(500);
    expect((await server.ask('/by-token', question('alice'))).json).toEqual({ token: 'alice' });
    // A header that is no part of the key still marks the request as a caller's own.
    const both = { headers: { 'x-auth-token': 'alice', authorization: 'Bearer x' } };
    expect((await server.ask('/by-token', both)).status).toBe(500);
  });

  it('get nothing where the caller is only promised, and end nothing by a bad token', async () => {
    const before = server.stored();
    expect((await server.ask('/promised')).status).toBe(200);
    expect([(await server.whenDown('/promised')).status, server.stored()]).toEqual([500, before]);
  });
});
