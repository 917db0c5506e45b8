import { type QuotaOptions, type QuotaStatus } from 'nestjs-weir';
import { WeirRateLimiter } from '../../lib/limiter/weir-rate-limiter.js';
import {
  startProxy,
  startRedis,
  stopAll,
  until,
  withRedis,
  type RedisProcess,
} from '../support/index.js';

const APP = { guaranteed: 1000, burst: 4000, priority: 0 } as const;
const STEADY = { local: { reserveTarget: 50 } };

describe('a quota on Redis that changes', () => {
  let server: RedisProcess;
  let prefixes = 0;
  const made: WeirRateLimiter[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  afterEach(async () => {
    await Promise.all(made.splice(0).map((limiter) => limiter.close()));
  });

  afterAll(() => stopAll());

  function quotaOf(apps: readonly string[], more: Partial<QuotaOptions> = {}): QuotaOptions {
    const all = Object.fromEntries(apps.map((app) => [app, APP]));
    return { cluster: { capacity: 10_000 }, apps: all, ...STEADY, ...more };
  }

  async function open(
    apps: readonly string[],
    prefix: string,
    url = server.url,
  ): Promise<WeirRateLimiter> {
    const store = { type: 'redis', url, prefix, decisionTimeout: '2s' } as const;
    const limiter = new WeirRateLimiter({ quota: quotaOf(apps), store });
    made.push(limiter);
    await limiter.ready();
    return limiter;
  }

  function change(limiter: WeirRateLimiter, revision: number, quota: QuotaOptions): void {
    limiter.prepare({ revision, policies: {}, quota })();
  }

  /** Some requests, of which all have to pass; what was used is what the store must hear of. */
  async function use(limiter: WeirRateLimiter, app: string, times: number): Promise<void> {
    for (let i = 0; i < times; i++) {
      await until(async () => (await limiter.tryAcquire({ app })).allowed, { what: `${app} ${i}` });
    }
  }

  /** Tokens of each app that the store knows to be used, once it has heard of so many in all. */
  function usedOf(limiter: WeirRateLimiter, total: number): Promise<Record<string, number>> {
    return until(async () => {
      const { apps, used }: QuotaStatus = await limiter.quota.status();
      if (used !== total) return undefined;
      return Object.fromEntries(Object.entries(apps).map(([app, own]) => [app, own.used]));
    });
  }

  it.each([
    ['one', ['a', 'b'], ['b', 'c'], 'a'],
    ['the other', ['b', 'c'], ['a', 'b'], 'c'],
  ])(
    'never books an app to another one of a limiter with other apps: %s first',
    async (_which, early, late, own) => {
      const prefix = `apps${prefixes++}`;
      const first = await open(early, prefix);
      await use(first, own, 3);
      const second = await open(late, prefix);
      const foreign = late.find((app) => !early.includes(app))!;
      await use(second, 'b', 5);
      // It has no number in the record: it has a local share, and takes from nobody.
      expect(await second.tryAcquire({ app: foreign })).toMatchObject({ source: 'fallback' });
      await use(first, 'b', 2);
      expect(await usedOf(first, 10)).toEqual({ [own]: 3, b: 7 });
      expect(await usedOf(second, 10)).toEqual({ [own]: 3, b: 7 });

      // Everything is lost, and whoever comes first writes a list of its own.
      await withRedis(server.port, (client) => client.flushall());
      let rounds = 0;
      const apps = await until(async () => {
        rounds++;
        await use(second, foreign, 1);
        await use(first, own, 1);
        await use(first, 'b', 2);
        await use(second, 'b', 2);
        const { apps: found } = await second.quota.status();
        const [other] = Object.keys(found).filter((app) => app !== 'b');
        return found.b!.used > 0 && found[other!]!.used > 0 ? found : undefined;
      });
      const names = Object.keys(apps).sort();
      expect([early, late]).toContainEqual(names);
      // The rest of earlier leases is in no account; but no more than was used is.
      for (const name of names) {
        expect(apps[name]!.used).toBeLessThanOrEqual(name === 'b' ? 4 * rounds : rounds);
      }
    },
  );

  it('gives one revision to the whole fleet, whoever is first', async () => {
    const prefix = `fleet${prefixes++}`;
    const fleet = await Promise.all([0, 1, 2].map(() => open(['a', 'b'], prefix)));
    await Promise.all(fleet.map((limiter) => use(limiter, 'a', 5)));
    for (const limiter of fleet) {
      change(limiter, 1, quotaOf(['b', 'new'], { cluster: { capacity: 20_000 } }));
    }
    await Promise.all(fleet.map((limiter) => use(limiter, 'new', 4)));
    const status = await until(async () => {
      const found = await fleet[0]!.quota.status();
      return found.apps.new?.used === 12 && found.apps.a === undefined ? found : undefined;
    });
    expect(status).toMatchObject({ revision: 1, capacity: 20_000, epoch: 1 });
    expect(Object.keys(status.apps)).toEqual(['b', 'new']);
  });

  it('is told to a limiter that has not heard of it, once', async () => {
    const prefix = `told${prefixes++}`;
    const [writer, reader] = [await open(['a'], prefix), await open(['a'], prefix)];
    const heard: number[] = [];
    reader.on('revision', ({ revision }) => heard.push(revision));
    await use(reader, 'a', 1);
    change(writer, 4, quotaOf(['a']));
    await until(async () => {
      await use(reader, 'a', 20);
      return heard.length > 0;
    });
    await use(reader, 'a', 200);
    expect(heard).toEqual([4]);
    change(reader, 4, quotaOf(['a']));
    change(writer, 5, quotaOf(['a']));
    await until(async () => {
      await use(reader, 'a', 20);
      return heard.length > 1;
    });
    expect(heard).toEqual([4, 5]);
  });

  it('reaches a limiter that was cut off, and one that changed it while it was', async () => {
    const prefix = `cut${prefixes++}`;
    const proxy = await startProxy({ targetPort: server.port });
    const [here, away] = [await open(['a'], prefix), await open(['a'], prefix, proxy.url)];
    await use(here, 'a', 1);
    await use(away, 'a', 1);
    const heard: number[] = [];
    away.on('revision', ({ revision }) => heard.push(revision));
    await proxy.cut();
    await until(async () => (await away.tryAcquire({ app: 'a' })).source === 'fallback');
    change(here, 1, quotaOf(['a', 'b']));
    await use(here, 'b', 3);
    await proxy.restore();
    await until(async () => {
      await away.tryAcquire({ app: 'a' });
      return heard.length > 0;
    });
    expect(heard).toEqual([1]);
    change(away, 1, quotaOf(['a', 'b']));
    await use(away, 'b', 3);

    await proxy.cut();
    await until(async () => (await away.tryAcquire({ app: 'a' })).source === 'fallback');
    change(away, 2, quotaOf(['a', 'b', 'c']));
    // It is for the store to say what a new app may have.
    expect(await away.tryAcquire({ app: 'c' })).toMatchObject({ allowed: false });
    expect((await here.quota.status()).revision).toBe(1);
    await proxy.restore();
    await use(away, 'c', 3);
    expect((await here.quota.status()).revision).toBe(2);
    await proxy.close();
  });
});
