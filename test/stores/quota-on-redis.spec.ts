import { createRateLimiter, type QuotaOptions, type RateLimiter } from 'nestjs-weir';
import { infoField, startRedis, stopAll, withRedis, type RedisProcess } from '../support/index.js';
import { settle } from '../support/manual-clock.js';

describe('a quota on Redis', () => {
  let server: RedisProcess;
  const limiters: RateLimiter[] = [];

  async function fleet(size: number, quota: QuotaOptions, prefix: string): Promise<RateLimiter[]> {
    const made = Array.from({ length: size }, () =>
      createRateLimiter({
        quota,
        store: { type: 'redis', url: server.url, prefix, decisionTimeout: '1s' },
      }),
    );
    limiters.push(...made);
    await Promise.all(made.map((limiter) => limiter.ready()));
    return made;
  }

  async function leaseCalls(): Promise<number> {
    const stats = await withRedis(server.port, (client) => client.info('commandstats'));
    return ['cmdstat_evalsha', 'cmdstat_eval']
      .map((name) => Number(/calls=(\d+)/.exec(infoField(stats, name) ?? '')?.[1] ?? 0))
      .reduce((sum, calls) => sum + calls, 0);
  }

  beforeAll(async () => {
    server = await startRedis();
  });

  afterAll(async () => {
    await Promise.all(limiters.map((limiter) => limiter.close()));
    await stopAll();
  });

  it('is shared by all nodes: no more than the capacity and one burst, however they pull', async () => {
    const quota: QuotaOptions = {
      cluster: { capacity: 2000 },
      apps: { only: { guaranteed: 1000, burst: 4000, burstDuration: '1s', priority: 0 } },
    };
    const nodes = await fleet(3, quota, 'bound');
    const depth = 400;
    const startMs = performance.now();
    let admitted = 0;
    const elapsedMs = (): number => performance.now() - startMs;
    // More than the burst has to flow, which takes as long as the machine has other things to do.
    while (elapsedMs() < 1000 || (admitted <= 1000 && elapsedMs() < 15_000)) {
      for (const node of nodes) {
        for (let i = 0; i < 20; i++) {
          const decision = node.tryAcquire({ app: 'only' });
          if (decision instanceof Promise)
            void decision.then(({ allowed }) => (admitted += +allowed));
          else if (decision.allowed) admitted++;
        }
      }
      await settle();
    }
    const seconds = elapsedMs() / 1000;
    expect(admitted).toBeLessThanOrEqual(2000 * seconds + depth);
    // How close to all of it is for the simulation, where no other process takes the time away.
    expect(admitted).toBeGreaterThan(1000);
  });

  it('costs Redis about a call per horizon, however many decisions there are in it', async () => {
    const quota: QuotaOptions = {
      cluster: { capacity: 1_000_000 },
      apps: { only: { guaranteed: 100_000, burst: 500_000, priority: 0 } },
    };
    const HORIZON_MS = 50;
    const [node] = await fleet(1, quota, 'calls');
    await node!.tryAcquire({ app: 'only' });
    const before = await leaseCalls();
    const startMs = performance.now();
    for (let decisions = 0; decisions < 20_000;) {
      // About twenty thousand a second, in small bursts also where the machine had other things to do.
      const due = Math.min(decisions + 50, (performance.now() - startMs) * 20);
      for (; decisions < due; decisions++) {
        const decision = node!.tryAcquire({ app: 'only' });
        if (decision instanceof Promise) expect((await decision).allowed).toBe(true);
      }
      await settle();
    }
    const horizons = (performance.now() - startMs) / HORIZON_MS;
    const calls = (await leaseCalls()) - before;
    // Twice as many while demand is being found out, and the beats of the registry.
    expect(calls).toBeLessThanOrEqual(2 * horizons + 20);
  });

  it('comes back when Redis does', async () => {
    const quota: QuotaOptions = { apps: { only: { guaranteed: 1000, burst: 1000 } } };
    const [node] = await fleet(1, quota, 'back');
    const modes: string[] = [];
    node!.on('mode', ({ mode }) => modes.push(mode));
    expect((await node!.tryAcquire({ app: 'only' })).allowed).toBe(true);
    await server.kill();
    for (let i = 0; i < 200 && !modes.includes('offline'); i++) {
      await node!.tryAcquire({ app: 'only' });
      await settle();
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(modes).toContain('offline');
    await server.restart();
    for (let i = 0; i < 1000 && modes.at(-1) === 'offline'; i++) {
      await node!.tryAcquire({ app: 'only' });
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    expect(modes.at(-1)).not.toBe('offline');
  });
});
