import { get, type ClientRequest, type Server, type ServerResponse } from 'node:http';
import {
  Body,
  Controller,
  Get,
  Header,
  HttpCode,
  Injectable,
  NotFoundException,
  Param,
  Post,
  Query,
  Req,
  Res,
  StreamableFile,
  UnauthorizedException,
  UseGuards,
  UseInterceptors,
  type CallHandler,
  type CanActivate,
  type ExecutionContext,
  type NestInterceptor,
} from '@nestjs/common';
import { Degradation, Degrade, RateLimit, RateLimiter, RateLimitModule } from 'nestjs-weir';
import { from, map, type Observable } from 'rxjs';
import { ManualClock } from '../support/manual-clock.js';
import { until } from '../support/until.js';
import { moduleOptions } from './degrade-routes.js';
import { Stage } from './degrade-stage.js';
import { PLATFORMS, startHttp, type HttpApp } from '../support/nest/http-apps.js';

interface AnyRequest {
  readonly headers: Record<string, string | undefined>;
  user?: unknown;
}

/** Knows callers by a header; a caller with a wrong one does not come in. */
@Injectable()
class FakeAuth implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<AnyRequest>();
    const { 'x-user': id } = request.headers;
    if (id === 'intruder') throw new UnauthorizedException();
    if (id !== undefined) request.user = id === 'nameless' ? {} : { id };
    return true;
  }
}

/** Writes into what handlers return, as some applications do. */
@Injectable()
class Scribbler implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next.handle().pipe(
      map((value: { notes: string[] }) => {
        value.notes.push('seen');
        return value;
      }),
    );
  }
}

/** Tells an account from a copy of one, as serialisers do that go by the class. */
@Injectable()
class Redactor implements NestInterceptor {
  intercept(_context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return next
      .handle()
      .pipe(map((value: unknown) => (value instanceof Account ? { name: value.name } : value)));
  }
}

class Account {
  constructor(
    readonly name: string,
    readonly secret: string,
  ) {}
}

let stage: Stage;

const Limited = (): MethodDecorator => RateLimit(() => (stage.isLimited ? 'closed' : undefined));

@Controller()
class Pages {
  @Get('page/:id')
  @Degrade()
  page(@Param('id') id: string, @Query() query: object): unknown {
    return stage.play() && { id, query: { ...query } };
  }

  @Get('vary')
  @Degrade({ vary: ['Accept-Language'] })
  vary(@Req() { headers }: AnyRequest): unknown {
    return stage.play() && { language: headers['accept-language'] };
  }

  @Get('mine')
  @Degrade()
  @UseGuards(FakeAuth)
  mine(@Req() { user }: AnyRequest): unknown {
    return stage.play() && { user: user ?? 'anybody' };
  }

  // Nest runs the guards of a method from the last decorator to the first.
  @Get('guarded')
  @UseGuards(FakeAuth)
  @Limited()
  @Degrade({ level4: { name: 'default' } })
  guarded(): unknown {
    return stage.play();
  }

  @Get('early')
  @RateLimit({ rate: 1, period: '1d', key: 'global', early: true })
  @Degrade({ level4: { name: 'default' } })
  early(): unknown {
    return stage.play();
  }

  @Get('shared')
  @Degrade({ shared: true })
  shared(): unknown {
    return stage.play();
  }

  @Get('by-key')
  @Degrade({ principal: (context) => headersOf(context)['x-key'] })
  byKey(@Req() { headers }: AnyRequest): unknown {
    return stage.play() && { key: headers['x-key'] ?? 'none' };
  }

  @Post('write')
  @Limited()
  @Degrade({ level4: 'Your order was not taken' })
  write(): unknown {
    return stage.play();
  }

  @Post('write-plain')
  @Limited()
  @Degrade()
  writePlain(): unknown {
    return stage.play();
  }

  @Post('write-in-time')
  @Degrade({ deadline: '500ms' })
  writeInTime(): unknown {
    return stage.play();
  }

  @Post('search')
  @HttpCode(200)
  @Degrade({ idempotent: true })
  search(@Body() body: object): unknown {
    return stage.play() && { body };
  }

  @Get('cookie')
  @Header('Set-Cookie', 'a=b')
  @Degrade()
  cookie(): unknown {
    return stage.play();
  }

  @Get('private')
  @Header('Cache-Control', 'private, max-age=10')
  @Degrade()
  private(): unknown {
    return stage.play();
  }

  @Get('accepted')
  @HttpCode(202)
  @Degrade()
  accepted(): unknown {
    return stage.play();
  }

  @Get('scribbled')
  @UseInterceptors(Scribbler)
  @Degrade()
  scribbled(): unknown {
    return stage.play() && { notes: [] };
  }

  @Get('scribbled-default')
  @UseInterceptors(Scribbler)
  @Degrade({ level1: false, level2: false, level4: { notes: [] } })
  scribbledDefault(): unknown {
    return stage.play();
  }

  @Get('account')
  @UseInterceptors(Redactor)
  @Degrade()
  account(): unknown {
    return stage.play() && new Account('ann', 'secret');
  }

  @Get('revived')
  @UseInterceptors(Redactor)
  @Degrade({ revive: (plain) => new Account((plain as Account).name, '') })
  revived(): unknown {
    return stage.play() && new Account('ann', 'secret');
  }

  @Get('anything')
  @Degrade()
  anything(): unknown {
    return stage.play();
  }

  @Get('passthrough')
  @Degrade()
  passthrough(@Res({ passthrough: true }) _response: unknown): unknown {
    return stage.play();
  }
}

function headersOf(context: ExecutionContext): Record<string, string | undefined> {
  return context.switchToHttp().getRequest<AnyRequest>().headers;
}

describe.each(PLATFORMS)('@Degrade on %s', (platform) => {
  let http: HttpApp;
  let clock: ManualClock;

  beforeAll(async () => {
    stage = new Stage((clock = new ManualClock()));
    http = await startHttp(platform, {
      imports: [RateLimitModule.forRoot(moduleOptions(stage))],
      controllers: [Pages],
    });
    await http.app.get(RateLimiter).acquire({ policy: 'closed', key: 'global' });
  });

  afterAll(() => http.close());

  beforeEach(() => {
    stage.works();
    clock.advance(10 * 60_000);
    // As well as on the first day.
    http.app.get(Degradation).disable('Pages.anything');
    http.app.get(Degradation).resume('Pages.anything');
  });

  const bodyOf = async (path: string, headers?: Record<string, string>): Promise<unknown> =>
    (await http.get(path, headers)).json();

  /** The answer to a request after one like it has succeeded, and the handler is down. */
  async function whenDown(path: string, headers?: Record<string, string>): Promise<Response> {
    stage.throws(new Error('down'));
    return http.get(path, headers);
  }

  const post = (path: string, body: object = {}): Promise<Response> =>
    fetch(http.url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });

  describe('what answers say of themselves', () => {
    it('is nothing while all is well', async () => {
      const { headers } = await http.get('/page/1');
      const own = ['x-degraded', 'age', 'cache-status', 'cache-control'];
      expect(own.map((name) => headers.get(name))).toEqual([null, null, null, null]);
    });

    it.each([
      [7, '7', 'weir; hit; ttl=23; detail=level1', 'level=1; reason=failed'],
      [40, '40', 'weir; hit; ttl=260; detail=level2', 'level=2; reason=failed'],
    ])('is how old they are, after %i s', async (seconds, age, status, degraded) => {
      await http.get('/page/1');
      clock.advance(seconds * 1000);
      const { headers } = await whenDown('/page/1');
      expect(Object.fromEntries(headers)).toMatchObject({
        age,
        'cache-status': status,
        'x-degraded': degraded,
        'cache-control': 'no-store',
      });
    });

    it('is the limit that was met as well', async () => {
      stage.isLimited = true;
      const { status, headers } = await http.get('/guarded');
      expect([status, headers.get('x-degraded')]).toEqual([200, 'level=4; reason=limited']);
      expect(headers.get('ratelimit')).toContain('"closed";r=0');
      // It is an answer: the caller need not come back for it.
      expect(headers.get('retry-after')).toBeNull();
    });
  });

  describe('whose answers they are', () => {
    it.each([
      ['/page/1', '/page/2'],
      ['/page/1?a=1', '/page/1?a=2'],
      ['/page/1?a=1', '/page/1'],
    ])('%s is not %s', async (one, other) => {
      await http.get(one);
      expect((await whenDown(other)).status).toBe(500);
      expect((await http.get(one)).status).toBe(200);
    });

    it('the order of a query does not matter', async () => {
      const body = await bodyOf('/page/1?a=1&b=2');
      expect(await (await whenDown('/page/1?b=2&a=1')).json()).toEqual(body);
    });

    it('the headers that were named do', async () => {
      await http.get('/vary', { 'accept-language': 'de' });
      const other = await whenDown('/vary', { 'accept-language': 'fr' });
      const same = await http.get('/vary', { 'accept-language': 'de' });
      expect([other.status, await same.json()]).toEqual([500, { language: 'de' }]);
    });

    it('each user has their own, and nobody another’s', async () => {
      for (const user of ['ann', 'bob']) await http.get('/mine', { 'x-user': user });
      await http.get('/mine');
      stage.throws(new Error('down'));
      for (const user of ['ann', 'bob']) {
        expect(await bodyOf('/mine', { 'x-user': user })).toEqual({ user: { id: user } });
      }
      expect(await bodyOf('/mine')).toEqual({ user: 'anybody' });
      expect((await http.get('/mine', { 'x-user': 'eve' })).status).toBe(500);
    });

    it.each<Record<string, string>>([
      { authorization: 'Bearer x' },
      { cookie: 'session=x' },
      { 'x-api-key': 'x' },
      { 'x-user': 'nameless' },
    ])('nobody’s are kept or given where nobody knows whose: %p', async (headers) => {
      const { caches } = http.app.get(Degradation).stats();
      await http.get('/mine', headers);
      expect(http.app.get(Degradation).stats().caches.stored).toBe(caches.stored);
      await http.get('/mine');
      expect((await whenDown('/mine', headers)).status).toBe(500);
    });

    it('unless the route says that they are everybody’s', async () => {
      await http.get('/shared', { authorization: 'Bearer x' });
      expect((await whenDown('/shared', { authorization: 'Bearer y' })).status).toBe(200);
    });

    it('the route may say who it is', async () => {
      await http.get('/by-key', { 'x-key': 'a', authorization: 'x' });
      expect((await whenDown('/by-key', { 'x-key': 'b' })).status).toBe(500);
      expect(await bodyOf('/by-key', { 'x-key': 'a' })).toEqual({ key: 'a' });
    });
  });

  describe('guards', () => {
    it('of authentication have their say before any fallback', async () => {
      stage.isLimited = true;
      expect((await http.get('/guarded', { 'x-user': 'intruder' })).status).toBe(401);
      expect((await http.get('/guarded', { 'x-user': 'ann' })).status).toBe(200);
      http.app.get(Degradation).force('Pages.guarded');
      expect((await http.get('/guarded', { 'x-user': 'intruder' })).status).toBe(401);
      http.app.get(Degradation).disable('Pages.guarded');
      http.app.get(Degradation).resume('Pages.guarded');
    });

    it('are spared those that an early limit stops, whatever the route has to offer', async () => {
      expect((await http.get('/early')).status).toBe(200);
      const denied = await http.get('/early');
      expect([denied.status, denied.headers.get('x-degraded')]).toEqual([429, null]);
    });
  });

  describe('writes', () => {
    it.each(['limited', 'failed'])('never seem to succeed: %s', async (trigger) => {
      await post('/write');
      stage.isLimited = trigger === 'limited';
      if (trigger === 'failed') stage.throws(new Error('down'));
      const response = await post('/write');
      expect(response.status).toBe(trigger === 'limited' ? 429 : 503);
      expect(response.headers.get('content-type')).toContain('application/problem+json');
      expect(await response.json()).toMatchObject({
        detail: 'Your order was not taken',
        code: 'DEGRADED',
        degraded: { level: 4, reason: trigger },
      });
    });

    it('without words end as without @Degrade', async () => {
      stage.isLimited = true;
      const denied = await post('/write-plain');
      expect(await denied.json()).toMatchObject({ status: 429, code: 'RATE_LIMITED' });
      stage.works();
      stage.throws(new Error('down'));
      expect((await post('/write-plain')).status).toBe(500);
    });

    it('are waited for, unless they have a deadline of their own', async () => {
      stage.hangs();
      const answers = ['/write-plain', '/write-in-time'].map((path) => {
        const entered = stage.entered();
        const answer = post(path);
        return entered.then(() => answer);
      });
      await until(() => stage.pending === 2);
      clock.advance(60_000);
      expect((await answers[1]!).status).toBe(503);
      stage.finish();
      expect((await answers[0]!).status).toBe(201);
    });

    it('that only ask are no writes, and their body is the question', async () => {
      await post('/search', { q: 'a' });
      stage.throws(new Error('down'));
      const [same, other] = [await post('/search', { q: 'a' }), await post('/search', { q: 'b' })];
      expect([await same.json(), other.status]).toEqual([{ body: { q: 'a' } }, 500]);
    });
  });

  describe('what is not kept', () => {
    it.each(['/cookie', '/private', '/accepted'])('%s', async (path) => {
      expect((await http.get(path)).ok).toBe(true);
      expect((await whenDown(path)).status).toBe(500);
    });

    it.each([
      ['nothing', undefined],
      ['a stream', () => new StreamableFile(Buffer.from('abc'))],
      ['many values', () => from([{ a: 1 }, { a: 2 }])],
    ])('%s, which goes on untouched', async (what, make) => {
      stage.does(make ?? (() => undefined));
      const text = await (await http.get('/anything')).text();
      expect(text).toBe({ nothing: '', 'a stream': 'abc' }[what] ?? '{"a":2}');
      expect((await whenDown('/anything')).status).toBe(500);
    });

    it('instances of classes, whose secrets their copies would show', async () => {
      expect(await bodyOf('/account')).toEqual({ name: 'ann' });
      expect((await whenDown('/account')).status).toBe(500);
    });

    it('but those that the route can make again', async () => {
      await http.get('/revived');
      expect(await (await whenDown('/revived')).json()).toEqual({ name: 'ann' });
    });

    it('what others make of an answer', async () => {
      expect(await bodyOf('/scribbled')).toEqual({ notes: ['seen'] });
      stage.throws(new Error('down'));
      for (let i = 0; i < 2; i++) {
        expect(await bodyOf('/scribbled')).toEqual({ notes: ['seen'] });
        expect(await bodyOf('/scribbled-default')).toEqual({ notes: ['seen'] });
      }
    });
  });

  describe('errors', () => {
    it('of callers are their own', async () => {
      await http.get('/anything');
      stage.throws(new NotFoundException());
      expect((await http.get('/anything')).status).toBe(404);
    });

    it('that come late only end their call', async () => {
      await http.get('/anything');
      stage.does(() => from(new Promise((_resolve, reject) => (fail = reject))));
      let fail: (error: Error) => void = () => undefined;
      const entered = stage.entered();
      const answer = http.get('/anything');
      await entered;
      clock.advance(1000);
      expect((await answer).headers.get('x-degraded')).toBe('level=1; reason=slow');
      fail(new Error('late'));
    });
  });

  it('answers with the response at hand are kept', async () => {
    await http.get('/passthrough');
    expect((await whenDown('/passthrough')).status).toBe(200);
  });

  it('an answer that comes too late is for the next ones', async () => {
    await http.get('/anything');
    clock.advance(60_000);
    stage.hangs();
    const entered = stage.entered();
    const answer = http.get('/anything');
    await entered;
    clock.advance(1000);
    expect((await answer).headers.get('x-degraded')).toBe('level=2; reason=slow');
    stage.finish({ name: 'late' });
    const next = await until(async () => {
      const response = await whenDown('/anything');
      return response.headers.get('x-degraded')!.startsWith('level=1') ? response : undefined;
    });
    expect(await next.json()).toEqual({ name: 'late' });
  });

  it('who hangs up says nothing about the resource', async () => {
    const failures = (): number => {
      const { resources } = http.app.get(Degradation).stats();
      return resources.find(({ resource }) => resource === 'Pages.anything')!.trips.errors;
    };
    stage.hangs();
    let closed = 0;
    const count = (_request: unknown, response: ServerResponse): void => {
      response.once('close', () => closed++);
    };
    const server = http.app.getHttpServer() as Server;
    server.on('request', count);
    const requests: ClientRequest[] = [];
    for (let i = 0; i < 30; i++) {
      const entered = stage.entered();
      requests.push(get(`${http.url}/anything`, { agent: false }).on('error', () => undefined));
      await entered;
    }
    for (const request of requests) request.destroy();
    await until(() => closed === 30);
    server.off('request', count);
    stage.finish(Promise.reject(new Error('aborted')));
    stage.works();
    expect((await http.get('/anything')).headers.get('x-degraded')).toBeNull();
    expect(failures()).toBe(0);
  });
});
