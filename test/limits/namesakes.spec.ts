import { Controller, Get, Version, VersioningType, type Type } from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { RateLimit, RateLimiter, RateLimitModule } from 'nestjs-weir';
import { startRedis, stopAll } from '../support/index.js';
import { startHttp, type HttpApp } from '../support/nest/http-apps.js';

/** Controllers of one class name, in the order in which a deployment happens to list them. */

const [oldUsers, newUsers] = ['v1/users', 'v2/users'].map((path) => {
  @Controller(path)
  class UsersController {
    @Get()
    @RateLimit({ rate: 2, period: '1h', key: 'global' })
    list(): string {
      return path;
    }
  }
  return UsersController as Type;
});

const [first, second] = ['1', '2'].map((version) => {
  @Controller('versions')
  class VersionsController {
    @Get()
    @Version(version)
    @RateLimit({ rate: 2, period: '1h', key: 'global' })
    list(): string {
      return version;
    }
  }
  return VersionsController as Type;
});

const [asked, told] = ['asked', 'told'].map((pattern) => {
  @Controller()
  class TalkController {
    @MessagePattern(pattern)
    @RateLimit({ rate: 2, period: '1h', key: 'global' })
    talk(): string {
      return pattern;
    }
  }
  return TalkController as Type;
});

@Controller('alone')
class AloneController {
  @Get()
  @RateLimit({ rate: 2, period: '1h', key: 'global' })
  list(): string {
    return 'alone';
  }
}

const ORDER = [oldUsers!, newUsers!, first!, second!, asked!, told!, AloneController];
const apps: HttpApp[] = [];

async function start(controllers: Type[], url?: string): Promise<HttpApp> {
  const store =
    url === undefined ? undefined : ({ type: 'redis', url, decisionTimeout: '5s' } as const);
  const imports = [RateLimitModule.forRoot(store === undefined ? {} : { store })];
  const http = await startHttp('express', { imports, controllers }, (app) =>
    app.enableVersioning({ type: VersioningType.HEADER, header: 'x-version' }),
  );
  apps.push(http);
  return http;
}

const namesIn = ({ app }: HttpApp): string[] => app.get(RateLimiter).policyNames().toSorted();

afterEach(async () => {
  for (const http of apps.splice(0)) await http.close();
});
afterAll(stopAll);

describe('inline policies of controllers that have one name', () => {
  it('are called the same in whichever order they are found', async () => {
    const names = namesIn(await start(ORDER));
    expect(namesIn(await start(ORDER.toReversed()))).toEqual(names);
    expect(names).toEqual([
      'AloneController.list',
      ...Array<unknown>(2).fill(expect.stringMatching(/^TalkController\.talk-[0-9a-f]{8}$/)),
      ...Array<unknown>(2).fill(expect.stringMatching(/^UsersController\.list-[0-9a-f]{8}$/)),
      ...Array<unknown>(2).fill(expect.stringMatching(/^VersionsController\.list-[0-9a-f]{8}$/)),
    ]);
    expect(new Set(names).size).toBe(ORDER.length);
  });

  it('tell callers of each the same name after a deployment in another order', async () => {
    const told = async (http: HttpApp): Promise<string | null> =>
      (await http.get('/v2/users')).headers.get('ratelimit-policy');
    expect(await told(await start(ORDER.toReversed()))).toBe(await told(await start(ORDER)));
  });

  it('do not swap their counts on Redis in a deployment in another order', async () => {
    const { url } = await startRedis();
    const before = await start(ORDER, url);
    for (let i = 0; i < 2; i++) expect((await before.get('/v1/users')).status).toBe(200);
    const version = { 'x-version': '2' };
    for (let i = 0; i < 2; i++) expect((await before.get('/versions', version)).status).toBe(200);
    const after = await start(ORDER.toReversed(), url);
    expect((await after.get('/v1/users')).status).toBe(429);
    expect((await after.get('/v2/users')).status).toBe(200);
    expect((await after.get('/versions', version)).status).toBe(429);
    expect((await after.get('/versions', { 'x-version': '1' })).status).toBe(200);
  });
});
