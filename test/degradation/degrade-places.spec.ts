import {
  Controller,
  Get,
  Header,
  Headers,
  HttpCode,
  Post,
  Req,
  Res,
  VersioningType,
  type INestApplication,
  type VersioningOptions,
} from '@nestjs/common';
import { ExpressAdapter } from '@nestjs/platform-express';
import { FastifyAdapter } from '@nestjs/platform-fastify';
import { Degradation, Degrade, RateLimitModule } from 'nestjs-weir';
import { PLATFORMS, startHttp, type HttpApp, type Platform } from '../support/nest/http-apps.js';
import { Warnings } from '../support/nest/warnings.js';

/** Answers depend on more than what stands in a URL: caches must not mistake one for another. */

let isDown = false;

function unlessDown<T>(answer: T): T {
  if (isDown) throw new Error('down');
  return answer;
}

interface AnyResponse {
  type?(type: string): unknown;
}

@Controller({ path: 'versions', version: ['1', '2'] })
class Versions {
  @Get()
  @Degrade()
  get(@Headers() { 'x-version': version, accept }: Record<string, string>): object {
    return unlessDown({ version, accept });
  }
}

@Controller({ path: 'tenants', host: ':tenant.weir.test' })
class Tenants {
  @Get()
  @Degrade()
  get(@Req() { hostname }: { hostname: string }): object {
    return unlessDown({ hostname });
  }
}

@Controller()
class Pages {
  @Get('declared-host')
  @Degrade({ vary: ['host'] })
  declaredHost(@Req() { hostname }: { hostname: string }): object {
    return unlessDown({ hostname });
  }

  @Get('text')
  @Degrade()
  text(@Res({ passthrough: true }) response: AnyResponse): string {
    response.type!('text/plain');
    return unlessDown('<script>alert(1)</script>');
  }

  @Get('declared-text')
  @Header('Content-Type', 'text/plain')
  @Degrade()
  declaredText(): string {
    return unlessDown('<script>alert(1)</script>');
  }

  @Get('json')
  @Degrade()
  json(@Res({ passthrough: true }) response: AnyResponse): object {
    response.type!('application/json');
    return unlessDown({ a: 1 });
  }

  @Get('whoami')
  @Degrade()
  whoami(@Headers('x-name') name: string): object {
    return unlessDown({ name });
  }

  @Post('files')
  @HttpCode(200)
  @Degrade({ idempotent: true })
  files(@Headers('x-file') file: string): object {
    return unlessDown({ file });
  }
}

const warnings = new Warnings();

/** Behind a proxy that is trusted, with a parser for files that keeps only the fields. */
function start(platform: Platform, versioning?: VersioningOptions): Promise<HttpApp> {
  isDown = false;
  warnings.texts.length = 0;
  const prepare = (app: INestApplication): void => {
    if (versioning !== undefined) app.enableVersioning(versioning);
    warnings.listen(app);
  };
  const module = {
    imports: [RateLimitModule.forRoot({})],
    controllers: [Versions, Tenants, Pages],
  };
  if (platform === 'fastify') {
    const adapter = new FastifyAdapter({ trustProxy: true });
    adapter.getInstance().addContentTypeParser(/^multipart/i, (_request, payload, done) => {
      payload.on('end', () => done(null, { field: 1 })).resume();
    });
    return startHttp(platform, module, prepare, adapter);
  }
  const adapter = new ExpressAdapter();
  const express = adapter.getInstance<{ set(name: string, value: unknown): void }>();
  express.set('trust proxy', true);
  adapter.use(
    (request: { body?: unknown; headers: Record<string, string> }, _: object, next: () => void) => {
      if (/^multipart/i.test(request.headers['content-type'] ?? '')) request.body = { field: 1 };
      next();
    },
  );
  return startHttp(platform, module, prepare, adapter);
}

describe.each(PLATFORMS)('on %s', (platform) => {
  let http: HttpApp;

  afterEach(async () => {
    await http.close();
    warnings.stop();
  });

  it.each<[string, VersioningOptions, (version: string) => Record<string, string>]>([
    ['a header', { type: VersioningType.HEADER, header: 'X-Version' }, (v) => ({ 'x-version': v })],
    [
      'the media type',
      { type: VersioningType.MEDIA_TYPE, key: 'v=' },
      (v) => ({ accept: `application/json;v=${v}` }),
    ],
    [
      'a function',
      {
        type: VersioningType.CUSTOM,
        extractor: (request) =>
          (request as { headers: Record<string, string> }).headers['x-version'] ?? '',
      },
      (v) => ({ 'x-version': v }),
    ],
  ])(
    'versions of one handler have answers of their own, told by %s',
    async (_, versioning, asked) => {
      http = await start(platform, versioning);
      const one = await (await http.get('/versions', asked('1'))).json();
      isDown = true;
      expect((await http.get('/versions', asked('2'))).status).toBe(500);
      const again = await http.get('/versions', asked('1'));
      expect([again.status, await again.json()]).toEqual([200, one]);
    },
  );

  it.each(['/tenants', '/declared-host'])(
    '%s: hosts that a trusted proxy tells have answers of their own',
    async (path) => {
      http = await start(platform);
      const by = (tenant: string) => ({ 'x-forwarded-host': `${tenant}.weir.test` });
      const alice = await (await http.get(path, by('alice'))).json();
      isDown = true;
      expect((await http.get(path, by('mallory'))).status).toBe(500);
      expect(await (await http.get(path, by('alice'))).json()).toEqual(alice);
    },
  );

  it('a text that was sent as text does not come back as a page', async () => {
    http = await start(platform);
    expect((await http.get('/text')).headers.get('content-type')).toMatch('text/plain');
    isDown = true;
    expect((await http.get('/text')).status).toBe(500);
    const told = warnings.texts.filter((text) => text.startsWith('Pages.text:'));
    expect(told).toEqual([expect.stringContaining(`'Content-Type' to "text/plain`)]);
  });

  it.each(['/declared-text', '/json'])('%s comes back as what it was', async (path) => {
    http = await start(platform);
    const normal = await http.get(path);
    isDown = true;
    const copy = await http.get(path);
    expect([copy.status, await copy.text()]).toEqual([200, await normal.text()]);
    const [type, before] = [copy, normal].map(
      ({ headers }) => headers.get('content-type')!.split(';')[0],
    );
    expect(type).toBe(before);
  });

  it.each(['multipart/form-data', 'Multipart/Form-Data', 'MULTIPART/mixed'])(
    'files are kept elsewhere than fields: %s',
    async (type) => {
      http = await start(platform);
      const send = (file: string) =>
        fetch(`${http.url}/files`, {
          method: 'POST',
          headers: { 'content-type': `${type}; boundary=x`, 'x-file': file },
          body: '--x--',
        });
      expect((await send('one')).status).toBe(200);
      isDown = true;
      expect((await send('other')).status).toBe(500);
    },
  );

  it('who has shown a certificate is somebody', async () => {
    http = await start(platform);
    const server = http.app.getHttpServer() as {
      on(event: 'connection', listener: (socket: object) => void): void;
    };
    server.on('connection', (socket) => Object.assign(socket, { authorized: true }));
    expect((await http.get('/whoami', { 'x-name': 'alice', connection: 'close' })).status).toBe(
      200,
    );
    expect(http.app.get(Degradation).stats().caches.stored).toBe(0);
  });
});
