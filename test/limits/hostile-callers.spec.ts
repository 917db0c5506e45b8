import { connect, type Socket as NetSocket } from 'node:net';
import { once } from 'node:events';
import {
  Controller,
  Get,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import {
  RateLimit,
  RateLimiter,
  RateLimitModule,
  type PolicyUse,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { until } from '../support/index.js';
import { settle } from '../support/manual-clock.js';
import { PLATFORMS, startHttp } from '../support/nest/http-apps.js';
import { header, HOUR, requestOf, WatchedServer } from './watched-server.js';

@Injectable()
class SlowAuth implements CanActivate {
  static entered: (() => void) | undefined;
  static go: Promise<void> = Promise.resolve();

  async canActivate(): Promise<boolean> {
    SlowAuth.entered?.();
    await SlowAuth.go;
    return true;
  }
}

let handled = 0;

@Controller()
class Routes {
  @Get('two-keys')
  @RateLimit(
    (context): PolicyUse[] => [
      { policy: 'three', key: header('x-user')(context) },
      { policy: 'three', key: 'tenant' },
    ],
    { quota: false },
  )
  twoKeys(): string {
    return 'ok';
  }

  @Get('inline')
  @RateLimit({ rate: 1, ...HOUR, quota: false })
  secretMethod(): string {
    return 'ok';
  }

  @Get('named-inline')
  @RateLimit({ rate: 1, ...HOUR, name: 'search', quota: false })
  otherSecret(): string {
    return 'ok';
  }

  @Get('words')
  @RateLimit('throwing', { quota: false })
  words(): string {
    return 'ok';
  }

  @Get('gone')
  @RateLimit('three', { quota: false })
  @UseGuards(SlowAuth)
  gone(): string {
    handled++;
    return 'ok';
  }
}

const options: RateLimitModuleInput = {
  policies: {
    three: { rate: 3, ...HOUR },
    throwing: {
      ...{ rate: 1000, ...HOUR },
      key: (context) => {
        throw new Error(decodeURIComponent(header('x-words')(context)!));
      },
    },
  },
};

describe.each(PLATFORMS)('callers of %s who mean harm', (platform) => {
  let server: WatchedServer;

  beforeAll(async () => {
    server = await WatchedServer.start(platform, Routes, options);
  });

  beforeEach(() => {
    server.renew();
    handled = 0;
  });

  afterAll(async () => {
    expect(await server.close()).toEqual([]);
  });

  it('one policy with two keys is two charges', async () => {
    const users = Array.from({ length: 8 }, (_, i) => ({ 'x-user': `u${i}` }));
    expect(await server.statuses('/two-keys', ...users)).toEqual([
      200, 200, 200, 429, 429, 429, 429, 429,
    ]);
    expect(await server.remaining('three', 'u0')).toBe(2);
    expect(await server.remaining('three', 'u5')).toBe(3);
    const { headers } = await server.http.get('/two-keys', { 'x-user': 'u9' });
    expect(headers.get('ratelimit')).toMatch(/^"three";r=\d;t=\d+$/);
  });

  it.each([
    ['/inline', /^limit-[0-9a-f]{8}$/],
    ['/named-inline', /^search$/],
  ])('learn nothing of how methods are called: %s', async (path, name) => {
    await server.http.get(path);
    const denied = await server.http.get(path);
    const [, policy] = /^"([^"]+)"/.exec(denied.headers.get('ratelimit-policy')!)!;
    expect(policy).toMatch(name);
    const told = JSON.stringify([...denied.headers, await denied.text()]);
    expect(told).not.toMatch(/Routes|secret/i);
    expect(told).toContain('violated-policies');
    const { policies } = server.http.app.get(RateLimiter).stats();
    expect(Object.keys(policies)).toEqual(expect.arrayContaining(['Routes.secretMethod']));
  });

  it('words of a caller are cut and quoted, and fill neither log nor memory', async () => {
    for (let i = 0; i < 100; i++) {
      const words = encodeURIComponent(
        `bad ${i}\n[Nest] forged\u001b[2J\u009b\u202e${'x'.repeat(500)}`,
      );
      expect((await server.http.get('/words', { 'x-words': words })).status).toBe(200);
    }
    const [line, ...more] = server.log.warnings;
    expect(more).toEqual([]);
    expect(line).toMatch(
      /^Policy 'throwing': its key failed \("bad 0\\n\[Nest\] forged\\u001b\[2J\\u009b\\u202ex+…"\)/,
    );
    expect(line!.length).toBeLessThan(250);
    server.clock.advance(60_000);
    await server.http.get('/words', { 'x-words': 'once%20more' });
    expect(server.log.warnings[1]).toMatch(/"once more".*100 requests since the last line/);
    expect(Object.keys(server.faults()).filter((name) => name.startsWith('throwing'))).toHaveLength(
      1,
    );
  });

  it('whoever has hung up has no second budget', async () => {
    expect(await server.statuses('/gone', {}, {}, {}, {})).toEqual([200, 200, 200, 429]);
    handled = 0;
    for (let i = 0; i < 3; i++) {
      let letGo = (): void => undefined;
      SlowAuth.go = new Promise((resolve) => (letGo = resolve));
      const isIn = new Promise<void>((resolve) => (SlowAuth.entered = resolve));
      const { hostname, port } = new URL(server.http.url);
      const socket: NetSocket = connect(Number(port), hostname);
      socket.on('error', () => undefined);
      socket.write('GET /gone HTTP/1.1\r\nhost: x\r\n\r\n');
      await isIn;
      const listener = server.http.app.getHttpServer() as {
        getConnections(done: (e: unknown, n: number) => void): void;
      };
      const open = () =>
        new Promise<number>((resolve) => listener.getConnections((_, count) => resolve(count)));
      const before = await open();
      socket.resetAndDestroy();
      await once(socket, 'close');
      await until(async () => (await open()) < before, { what: 'the server to notice' });
      letGo();
      await settle();
    }
    expect(handled).toBe(0);
    expect(await server.remaining('three', '(none)')).toBe(3);
  });
});

@Injectable()
class Auth implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    requestOf(context).user = { id: requestOf(context).headers['x-user'] };
    return true;
  }
}

@Controller()
class Priced {
  @Get('priced')
  @RateLimit('priced')
  @UseGuards(Auth)
  priced(): string {
    return 'ok';
  }
}

it('a guard that comes later and asks for more pays the difference', async () => {
  const policies: RateLimitModuleInput['policies'] = {
    priced: {
      ...{ rate: 10, ...HOUR },
      cost: (context) => (requestOf(context).user ? 5 : 2),
    },
  };
  const http = await startHttp('express', {
    imports: [RateLimitModule.forRoot({ policies, apply: ['priced'] })],
    controllers: [Priced],
  });
  const left: (string | null)[] = [];
  for (let i = 0; i < 3; i++) left.push((await http.get('/priced')).headers.get('ratelimit'));
  // Two by the guard of the application, three more by that of the method, once there is a user.
  expect(left.map((text) => /r=(\d+)/.exec(text!)![1])).toEqual(['5', '0', '0']);
  expect((await http.get('/priced')).status).toBe(429);
  await http.close();
});
