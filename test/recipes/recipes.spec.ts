import { createHmac } from 'node:crypto';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { type AddressInfo } from 'node:net';
import { join } from 'node:path';
import { type INestApplication, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { ExpressAdapter, type NestExpressApplication } from '@nestjs/platform-express';
import { DocumentBuilder, SwaggerModule } from '@nestjs/swagger';
import { createRateLimiter, Protection } from 'nestjs-weir';
import { checkDocument } from '../../lib/config/schema/check.js';
import { parseText } from '../../lib/config/sources/parse-text.js';
import { PAGES, readPage } from '../package/markdown.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { makeTempDir, stopAll } from '../support/processes.js';
import { ApiKeysModule } from './api-keys.js';
import { BodyModule } from './body.js';
import { HealthModule } from './health.js';
import { JwtModule } from './jwt.js';
import { LoginModule } from './login.js';
import { PartnerClient, PartnerError } from './partner.js';
import { behindCloudflare, behindLoadBalancer, behindNginx, PageModule } from './proxies.js';
import { handler } from './serverless.js';
import { PagesModule, setUpSwagger, TOO_MANY_REQUESTS } from './swagger.js';
import { TenantsModule } from './tenants.js';

afterAll(stopAll);

const ended: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ended.splice(0)) await end();
});

async function start(
  module: Type,
  prepare: (app: NestExpressApplication) => void = () => undefined,
): Promise<{
  app: INestApplication;
  ask: (path: string, init?: RequestInit) => Promise<Response>;
}> {
  const app = await NestFactory.create<NestExpressApplication>(module, new ExpressAdapter(), {
    logger: false,
    abortOnError: false,
  });
  prepare(app);
  await app.listen(0, '127.0.0.1');
  ended.push(() => app.close());
  const url = await app.getUrl();
  return { app, ask: (path, init) => fetch(url + path, init) };
}

/** One status after the other, of requests with these headers. */
async function statuses(
  module: Type,
  requests: readonly (readonly [path: string, headers?: Record<string, string>])[],
  prepare?: (app: NestExpressApplication) => void,
): Promise<number[]> {
  const { ask } = await start(module, prepare);
  const seen: number[] = [];
  for (const [path, headers = {}] of requests) seen.push((await ask(path, { headers })).status);
  return seen;
}

describe('the pages of recipes', () => {
  const folder = new URL('./', import.meta.url);
  const pages = PAGES.filter((page) => /recipes-|graphql/.test(page))
    .map(readPage)
    .join('\n');
  const files = readdirSync(folder).filter((name) => !name.endsWith('.spec.ts'));

  it.each(files)('show what is run here: %s', (name) => {
    expect(pages).toContain(`\`\`\`ts\n${readFileSync(new URL(name, folder), 'utf8')}\`\`\``);
  });
});

describe('login, by address and by name', () => {
  it('ends guesses at a name, and forgets them when its owner comes', async () => {
    const { ask } = await start(LoginModule);
    const login = async (name: string, password: string): Promise<number> => {
      const headers = { 'content-type': 'application/json' };
      const body = JSON.stringify({ name, password });
      return (await ask('/login', { method: 'POST', headers, body })).status;
    };
    const tries = async (name: string, passwords: readonly string[]): Promise<number[]> => {
      const seen: number[] = [];
      for (const password of passwords) seen.push(await login(name, password));
      return seen;
    };
    expect(await tries('ann', ['a', 'b', 'c', 'd', 'right', 'e', 'f'])).toEqual([
      ...[401, 401, 401, 401, 200, 401, 401],
    ]);
    expect(await tries('ben', ['a', 'b', 'c', 'd', 'e', 'right'])).toEqual([
      ...[401, 401, 401, 401, 401, 429],
    ]);
    // Another spelling is the same name.
    expect(await tries(' BEN', ['right'])).toEqual([429]);
    // Twelve were allowed of this address, and eight are left for all other names.
    const names = Array.from({ length: 10 }, (_, i) => `name-${i}`);
    const seen: number[] = [];
    for (const name of names) seen.push(await login(name, 'x'));
    expect(seen.filter((status) => status === 401)).toHaveLength(8);
    expect(seen.slice(-2)).toEqual([429, 429]);
  });
});

/** A token as an identity provider signs it. */
function tokenOf(sub: string, { secret = 'secret', expiresInS = 3600 } = {}) {
  const part = (value: object): string => Buffer.from(JSON.stringify(value)).toString('base64url');
  const exp = Math.floor(Date.now() / 1000) + expiresInS;
  const said = `${part({ alg: 'HS256', typ: 'JWT' })}.${part({ sub, name: 'x', exp })}`;
  const signature = createHmac('sha256', secret).update(said).digest('base64url');
  return { authorization: `Bearer ${said}.${signature}` };
}

describe('authentication', () => {
  it('of all routes by passport-jwt comes before limits by user', async () => {
    process.env['JWT_SECRET'] = 'secret';
    ended.push(() => delete process.env['JWT_SECRET']);
    const [ann, ben] = [tokenOf('ann'), tokenOf('ben')];
    const strangers = [tokenOf('ann', { secret: 'guessed' }), tokenOf('ann', { expiresInS: -1 })];
    const asked = [{}, ...strangers, ann, ann, ann, ben].map((headers) => ['/account', headers]);
    const open = ['/health', '/health', '/health'].map((path) => [path]);
    expect(await statuses(JwtModule, [...asked, ...open] as never)).toEqual([
      ...[401, 401, 401, 200, 200, 429, 200],
      ...[200, 200, 200],
    ]);
  });

  it('by API keys brings the plan along', async () => {
    const [acme, bolt] = ['key-of-acme', 'key-of-bolt'].map((key) => ({ 'x-api-key': key }));
    const path = '/reports';
    const asked = [[path], [path, acme], [path, acme], [path, acme], [path, acme], [path, bolt]];
    expect(await statuses(ApiKeysModule, [...asked, [path, bolt]] as never)).toEqual([
      ...[401, 200, 200, 200, 429, 200, 429],
    ]);
  });

  it('by API keys ends guesses at keys, before the database is asked', async () => {
    const guesses = Array.from({ length: 100 }, (_, i) => ['/reports', { 'x-api-key': `${i}` }]);
    const seen = await statuses(ApiKeysModule, guesses as never);
    expect([seen[0], seen.at(-1)]).toEqual([401, 429]);
  });

  it('of tenants keeps one user from using up what all have', async () => {
    const { app } = await start(TenantsModule);
    const port = Number(new URL(await app.getUrl()).port);
    const { request } = await import('node:http');
    // fetch chooses the Host by itself.
    const ask = (host: string, user: string): Promise<number> =>
      new Promise((resolve, reject) => {
        const headers = { host, 'x-user': user };
        const asked = request({ port, host: '127.0.0.1', path: '/orders', headers }, (response) => {
          response.resume();
          resolve(response.statusCode!);
        });
        asked.on('error', reject).end();
      });
    const seen: number[] = [];
    for (const [host, user] of [
      ...[1, 2, 3, 4].map(() => ['acme.example.com', 'ann']),
      ...[1, 2].map(() => ['acme.example.com', 'ben']),
      ...[1, 2, 3].map(() => ['bolt.example.com', 'ann']),
    ]) {
      seen.push(await ask(host!, user!));
    }
    // ann has three of acme's four, ben the last one; bolt has two of its own.
    expect(seen).toEqual([200, 200, 200, 429, 200, 429, 200, 200, 429]);
  });
});

describe('behind a proxy', () => {
  const from = (addresses: string) => ['/', { 'x-forwarded-for': addresses }] as const;

  it.each([
    // The proxy adds the caller's address; what stands before it was made up by the caller.
    ['nginx', behindNginx, ['198.51.100.1', 'evil, 198.51.100.1', '198.51.100.2']],
    [
      'a load balancer',
      behindLoadBalancer,
      ['198.51.100.1', '10.9.9.9, 198.51.100.1', '198.51.100.2'],
    ],
    [
      'Cloudflare',
      behindCloudflare,
      [
        '198.51.100.1, 172.64.0.1',
        '10.9.9.9, 198.51.100.1, 172.64.0.2',
        '198.51.100.2, 172.64.0.1',
      ],
    ],
  ])('%s tells callers apart, and none can choose its address', async (_name, prepare, headers) => {
    expect(await statuses(PageModule, headers.map(from), prepare)).toEqual([200, 429, 200]);
  });

  it('callers share one address if nobody is trusted', async () => {
    const asked = ['198.51.100.1', '198.51.100.2'].map(from);
    expect(await statuses(PageModule, asked)).toEqual([200, 429]);
  });
});

interface OpenApi {
  readonly paths: Record<string, { readonly get: { readonly responses: Record<string, object> } }>;
}

describe('responses', () => {
  it('health checks are left out', async () => {
    const asked = ['/', '/', '/health', '/health', '/metrics'].map((path) => [path] as const);
    expect(await statuses(HealthModule, asked)).toEqual([200, 429, 200, 200, 200]);
  });

  it('have one body for the whole application', async () => {
    const { ask } = await start(BodyModule);
    for (const [path, seconds] of [
      ['search', 60],
      ['export', 3600],
    ] as const) {
      await ask(`/${path}`);
      const denied = await ask(`/${path}`);
      expect(denied.status).toBe(429);
      expect(await denied.json()).toEqual({ error: { code: 'slow_down', limit: path, seconds } });
      expect(denied.headers.get('retry-after')).toBe(String(seconds));
    }
  });

  it('are what Swagger says of them', async () => {
    const { app, ask } = await start(PagesModule, setUpSwagger);
    const { paths } = (await (await ask('/api-json')).json()) as OpenApi;
    const { status: _status, ...documented } = TOO_MANY_REQUESTS;
    expect(paths['/']!.get.responses['429']).toEqual(documented);
    expect(Object.keys(paths['/']!.get.responses).sort()).toEqual(['200', '429']);
    expect(Object.keys(paths['/about']!.get.responses)).toEqual(['200']);
    const everywhere = new DocumentBuilder().addGlobalResponse(TOO_MANY_REQUESTS).build();
    const { paths: all } = SwaggerModule.createDocument(app, everywhere);
    expect(all['/about']!.get!.responses).toEqual({
      200: expect.anything() as object,
      429: documented,
    });
    await ask('/');
    const denied = await ask('/');
    const [type, { schema }] = Object.entries(TOO_MANY_REQUESTS.content)[0]!;
    expect(denied.headers.get('content-type')).toContain(type);
    for (const name of Object.keys(TOO_MANY_REQUESTS.headers)) {
      expect([name, denied.headers.has(name)]).toEqual([name, true]);
    }
    const body = (await denied.json()) as Record<string, unknown>;
    expect(Object.keys(body).sort()).toEqual(Object.keys(schema.properties).sort());
    expect(Object.keys(body)).toEqual(expect.arrayContaining(schema.required));
    const kinds = { string: 'string', integer: 'number', array: 'object' };
    for (const [name, { type: kind }] of Object.entries(schema.properties)) {
      expect([name, typeof body[name]]).toEqual([name, kinds[kind as keyof typeof kinds]]);
    }
    expect(schema.properties.code.enum).toContain(body['code']);
  });
});

describe('where it runs', () => {
  const page = readPage('docs/recipes-deployment.md');

  it('takes the limits of a ConfigMap', async () => {
    const blocks = [...page.matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text]) => text!);
    const [map, deployment] = await Promise.all(blocks.map((text) => parseText(text, 'k8s.yaml')));
    const { data } = map as { data: Record<string, string> };
    const text = data['weir.yaml']!;
    expect(checkDocument(await parseText(text, 'weir.yaml')).policies).toHaveProperty('page');
    // Where the container finds it is where the application looks for it.
    expect(JSON.stringify(deployment)).toContain('"mountPath":"/etc/weir"');
    expect(JSON.stringify(deployment)).toContain('"path":"/livez"');
    const file = join(makeTempDir(), 'weir.yaml');
    writeFileSync(file, text);
    process.env['WEIR_FILE'] = file;
    const { ConfigMapModule } = await import('./config-map.js');
    delete process.env['WEIR_FILE'];
    const { ask } = await start(ConfigMapModule);
    const { headers } = await ask('/');
    expect(headers.get('ratelimit-policy')).toBe('"page";q=20;w=60');
    expect((await ask('/livez')).headers.has('ratelimit-policy')).toBe(false);
  });

  it('starts once where functions are called', async () => {
    const server: Server = createServer((request, response) => void handler(request, response));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    ended.push(() => new Promise((resolve) => server.close(resolve)));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    const seen: number[] = [];
    for (let i = 0; i < 3; i++) seen.push((await fetch(url)).status);
    expect(seen).toEqual([200, 200, 429]);
  });
});

describe('calls to others', () => {
  it('of a partner go one every 100 ms, and give up in time', async () => {
    const clock = new ManualClock();
    const shaper = { algorithm: 'leaky-bucket', mode: 'shaper', rate: '10/s', burst: 50 } as const;
    const limiter = createRateLimiter({ clock, policies: { partner: shaper } });
    const protection = new Protection(
      { partner: { deadline: '2s', breaker: {}, throttle: { minimumCalls: 2 } } },
      { limiter, clock },
    );
    ended.push(() => limiter.close());
    const calls: [path: string, atMs: number][] = [];
    const client = new PartnerClient(limiter, protection, (path) => {
      calls.push([path, clock.now() / 1000]);
      return Promise.resolve(new Response('{}', { status: path === 'no' ? 429 : 200 }));
    });
    const began = clock.now() / 1000;
    const all = Promise.all(['a', 'b', 'c'].map((path) => client.get(path)));
    const late = expect(client.get('d', 100)).rejects.toMatchObject({ code: 'ACQUIRE_TIMEOUT' });
    for (let i = 0; i < 4; i++) {
      await settle();
      clock.advance(100);
    }
    await settle();
    await Promise.all([all, late]);
    expect(calls.map(([path, at]) => [path, at - began])).toEqual([
      ['a', 0],
      ['b', 100],
      ['c', 200],
    ]);
    clock.advance(10_000);
    const refused = expect(client.get('no')).rejects.toBeInstanceOf(PartnerError);
    await settle();
    await refused;
    expect(protection.stats().partner!.throttle).toMatchObject({ refused: 1 });
  });
});
