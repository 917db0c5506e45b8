import {
  Controller,
  Get,
  Injectable,
  Module,
  UnauthorizedException,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
} from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { type NestExpressApplication } from '@nestjs/platform-express';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  Protect,
  RateLimit,
  RateLimitConfig,
  RateLimiter,
  RateLimitModule,
  type RateLimitModuleInput,
} from 'nestjs-weir';
import { runCommand } from '../../lib/cli/run-command.js';
import { startRedis, stopAll, until } from '../support/index.js';
import { makeTempDir } from '../support/processes.js';
import { ManualClock } from '../support/manual-clock.js';

/** As long as Redis may take on a busy machine: these tests are about its answers. */
const PATIENCE = '5s';

@Controller()
class ShopController {
  @RateLimit('browse')
  @Get('browse')
  browse(): string {
    return 'ok';
  }

  @RateLimit({ rate: 2, period: '1h' })
  @Get('inline')
  inline(): string {
    return 'ok';
  }
}

/** Callers say who they are; whoever does not stays outside. */
class Login implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context
      .switchToHttp()
      .getRequest<{ headers: { 'x-user'?: string }; user?: string }>();
    request.user = request.headers['x-user'];
    if (request.user === undefined) throw new UnauthorizedException();
    return true;
  }
}

@Controller('members')
@UseGuards(Login)
class MembersController {
  @RateLimit('visits')
  @Get()
  visit(): string {
    return 'ok';
  }
}

@Injectable()
class StockService {
  @Protect('db')
  read(): Promise<string> {
    return Promise.resolve('stock');
  }

  @Protect('mail', { rate: 'mails' })
  mail(): Promise<void> {
    return Promise.resolve();
  }
}

const QUOTA = { app: 'shop', quota: { apps: { shop: { guaranteed: 100 } } } };

const apps: NestExpressApplication[] = [];

async function start(options: RateLimitModuleInput = {}): Promise<NestExpressApplication> {
  @Module({
    imports: [
      RateLimitModule.forRoot({
        policies: {
          browse: { rate: 3, period: '1h' },
          visits: { rate: 1, period: '1h' },
          mails: { rate: 9 },
        },
        protection: { db: {} },
        ...options,
      }),
    ],
    controllers: [ShopController, MembersController],
    providers: [StockService],
  })
  class AppModule {}
  const app = await NestFactory.create<NestExpressApplication>(AppModule, { logger: false });
  await app.listen(0, '127.0.0.1');
  apps.push(app);
  return app;
}

async function ask(app: NestExpressApplication, path: string): Promise<Response> {
  return fetch(`${await app.getUrl()}${path}`);
}

async function statuses(app: NestExpressApplication, path: string, count: number) {
  const all: number[] = [];
  for (let n = 0; n < count; n++) all.push((await ask(app, path)).status);
  return all;
}

afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});
afterAll(stopAll);

describe('the configuration of an application', () => {
  it('changes limits and what callers are told of them, and keeps what was used', async () => {
    const app = await start({ clock: new ManualClock() });
    const config = app.get(RateLimitConfig);
    expect(config.current()).toMatchObject({ revision: 1, profile: 'normal' });
    expect((await ask(app, '/browse')).headers.get('ratelimit-policy')).toBe('"browse";q=3;w=3600');
    await config.update({ policies: { browse: { rate: 6, period: '2h' } } }, { by: 'test' });
    // One third was used, and still is.
    const next = await ask(app, '/browse');
    expect(next.headers.get('ratelimit-policy')).toBe('"browse";q=6;w=7200');
    expect(next.headers.get('ratelimit')).toMatch(/r=3;/);
    expect(await statuses(app, '/browse', 4)).toEqual([200, 200, 200, 429]);
    expect((await config.history()).map(({ revision, by }) => [revision, by])).toEqual([
      [2, 'test'],
      [1, expect.any(String)],
    ]);
  });

  it('changes a policy that stands in a decorator', async () => {
    const app = await start({ clock: new ManualClock() });
    const policies = { 'ShopController.inline': { rate: 1 } };
    await app.get(RateLimitConfig).update({ policies });
    expect(await statuses(app, '/inline', 2)).toEqual([200, 429]);
  });

  it('refuses what a route could not live with, and names the route', async () => {
    const app = await start();
    const config = app.get(RateLimitConfig);
    await expect(config.update({ policies: { browse: null } })).rejects.toThrow(
      /policies\.browse.*ShopController\.browse/,
    );
    expect(config.current().revision).toBe(1);
    expect(app.get(RateLimiter).revision).toBe(1);
    expect((await ask(app, '/browse')).status).toBe(200);
  });

  it('asks a policy when its key can be known, also if that has changed', async () => {
    const app = await start({ clock: new ManualClock(), apply: 'quota', ...QUOTA });
    const config = app.get(RateLimitConfig);
    const visit = async (...users: (string | undefined)[]) => {
      const all: number[] = [];
      for (const user of users) {
        const headers: Record<string, string> = user === undefined ? {} : { 'x-user': user };
        all.push((await fetch(`${await app.getUrl()}/members`, { headers })).status);
      }
      return all;
    };
    // By address it is asked before anybody has to say who they are.
    expect(await visit(undefined, undefined, 'ann')).toEqual([401, 429, 429]);
    await config.update({ policies: { visits: { key: 'user' } } });
    expect(await visit(undefined, 'ann', undefined, 'ben', 'ann')).toEqual([
      401, 200, 401, 200, 429,
    ]);
    await config.update({ policies: { visits: { key: ['route', 'ip'] } } });
    expect(await visit(undefined, undefined, 'cid')).toEqual([401, 429, 429]);
  });

  it('tells the new figures of policies that are asked early, or before others', async () => {
    const policies = {
      browse: { rate: 3, period: '1h', early: true },
      visits: { rate: 1, period: '1h', key: 'user' },
      mails: { rate: 9 },
    } as const;
    const app = await start({ clock: new ManualClock(), policies, apply: ['browse'] });
    const told = async (path: string) => (await ask(app, path)).headers.get('ratelimit-policy');
    expect(await told('/browse')).toBe('"browse";q=3;w=3600');
    expect(await told('/members')).toBe('"browse";q=3;w=3600');
    await app.get(RateLimitConfig).update({ policies: { browse: { period: '2h' } } });
    expect(await told('/browse')).toBe('"browse";q=3;w=7200');
    expect(await told('/members')).toBe('"browse";q=3;w=7200');
  });

  it('gives a resource the policy that comes with it, and no other takes it away', async () => {
    const app = await start({ clock: new ManualClock() });
    const config = app.get(RateLimitConfig);
    const stock = (): Promise<string> => app.get(StockService).read();
    const rate = 'reads';
    await config.update({ policies: { reads: { rate: 1 } }, protection: { db: { rate } } });
    expect(await stock()).toBe('stock');
    await expect(stock()).rejects.toMatchObject({ code: 'PROTECTION_REJECTED' });
    await expect(config.update({ policies: { reads: null } })).rejects.toThrow(
      'protection.db.rate: expected the name of one of the policies',
    );
    // One that only the code names is in no document.
    await expect(config.update({ policies: { mails: null } })).rejects.toThrow(
      /protection\.mail\.rate: unknown policy "mails"; the limiter has .*"reads"/,
    );
    await config.update({ policies: { reads: null }, protection: { db: { rate: null } } });
    expect(await stock()).toBe('stock');
  });

  it('follows a file', async () => {
    const file = join(makeTempDir(), 'limits.yaml');
    writeFileSync(file, 'policies:\n  browse:\n    rate: 1\n');
    const app = await start({ config: { file, filePoll: '20ms' } });
    expect(await statuses(app, '/browse', 2)).toEqual([200, 429]);
    writeFileSync(file, 'policies:\n  browse:\n    rate: 100\n');
    await until(() => app.get(RateLimitConfig).current().revision === 2);
    expect((await ask(app, '/browse')).headers.get('ratelimit-policy')).toBe(
      '"browse";q=100;w=3600',
    );
  });

  it('has no policy of the code that a file takes away from the start', async () => {
    const file = join(makeTempDir(), 'limits.yaml');
    writeFileSync(file, 'policies:\n  spare: null\n');
    const policies = {
      browse: { rate: 3 },
      visits: { rate: 1 },
      mails: { rate: 9 },
      spare: { rate: 1 },
    };
    const app = await start({ policies, config: { file } });
    expect(app.get(RateLimiter).policyNames()).not.toContain('spare');
    await app.get(RateLimitConfig).update({ policies: { spare: { rate: 2 } } });
    expect(app.get(RateLimiter).policy('spare')!.base.capacity).toBe(2);
  });

  it('is that of all services on a Redis, whether they have a quota or not', async () => {
    const { url } = await startRedis();
    const store = { type: 'redis', url, decisionTimeout: PATIENCE } as const;
    const [withQuota, without] = [
      await start({ ...QUOTA, store }),
      await start({ store, service: 'plain' }),
    ];
    const config = without.get(RateLimitConfig);
    await withQuota
      .get(RateLimitConfig)
      .update({ policies: { browse: { rate: 1, period: '1h' } } });
    await until(async () => config.isEveryoneOn(config.current().revision));
    expect(config.current().revision).toBe(withQuota.get(RateLimitConfig).current().revision);
    expect(await statuses(without, '/browse', 2)).toEqual([200, 429]);
  });

  it('reaches every process that shares a Redis', async () => {
    const redis = await startRedis();
    const store = { type: 'redis', url: redis.url, decisionTimeout: PATIENCE } as const;
    const [one, other] = [
      await start({ store, nodeId: 'one', ...QUOTA }),
      await start({ store, nodeId: 'other', ...QUOTA }),
    ];
    const { revision } = await one
      .get(RateLimitConfig)
      .update({ policies: { browse: { rate: 50 } } });
    await until(() => other.get(RateLimitConfig).current().revision === revision);
    await until(() => one.get(RateLimitConfig).isEveryoneOn(revision));
    expect((await one.get(RateLimitConfig).nodes()).map(({ node }) => node).sort()).toEqual([
      'one',
      'other',
    ]);
    expect((await ask(other, '/browse')).headers.get('ratelimit-policy')).toBe(
      '"browse";q=50;w=3600',
    );
    // A change that they cannot follow is refused by them and by the command line in the same words.
    const refusal = await one
      .get(RateLimitConfig)
      .update({ cluster: { id: 'eu' } })
      .catch((error: Error) => error.message);
    expect(refusal).toMatch(/quota\.clusterId: expected "default", as at the start/);
    const told: string[] = [];
    const output = {
      log: (text: string) => told.push(text),
      error: (text: string) => told.push(text),
    };
    const command = ['config', 'set', 'cluster.id', 'eu', '--url', redis.url];
    expect([await runCommand(command, output), told]).toEqual([1, [refusal]]);
    expect(one.get(RateLimitConfig).current().revision).toBe(revision);
  });
});
