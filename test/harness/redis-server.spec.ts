import { existsSync } from 'node:fs';
import { startRedis, stopAll, until, withRedis } from '../support/index.js';

afterAll(stopAll);

describe('startRedis', () => {
  it('gives a server that answers, keeps nothing on disk and takes settings', async () => {
    const redis = await startRedis({ config: { maxmemory: '64mb' } });
    const settings = await withRedis(redis.port, async (client) => [
      await client.ping(),
      await client.config('GET', 'save'),
      await client.config('GET', 'appendonly'),
      await client.config('GET', 'maxmemory'),
    ]);
    expect(settings).toEqual([
      'PONG',
      ['save', ''],
      ['appendonly', 'no'],
      ['maxmemory', String(64 * 1024 * 1024)],
    ]);
    await redis.stop();
  });

  it('leaves neither process nor directory after stop', async () => {
    const redis = await startRedis();
    const { pid, dir } = redis;
    await redis.stop();
    expect(isRunning(pid)).toBe(false);
    expect(existsSync(dir)).toBe(false);
    expect(() => redis.pid).toThrow('is down');
  });

  it('stops a paused server too', async () => {
    const redis = await startRedis();
    const { pid } = redis;
    redis.pause();
    await redis.stop();
    expect(isRunning(pid)).toBe(false);
  });

  it('does not answer while it is paused', async () => {
    const redis = await startRedis();
    await withRedis(redis.port, async (client) => {
      redis.pause();
      let answered = false;
      const ping = client.ping().then(() => (answered = true));
      await expect(until(() => answered, { timeoutMs: 100, what: 'PONG' })).rejects.toThrow('PONG');
      redis.resume();
      await ping;
    });
    await redis.stop();
  });

  it('has a wall clock that can be stepped back and forth, if asked to', async () => {
    const redis = await startRedis({ clock: 'stepped' });
    const offMs = (): Promise<number> =>
      withRedis(redis.port, async (client) => {
        const [seconds, micros] = await client.time();
        return Number(seconds) * 1000 + Number(micros) / 1000 - Date.now();
      });
    expect(Math.abs(await offMs())).toBeLessThan(60_000);
    redis.stepClock(-3_600_000.5);
    expect(Math.abs((await offMs()) + 3_600_000)).toBeLessThan(60_000);
    redis.stepClock(7_200_001.25);
    expect(Math.abs((await offMs()) - 3_600_000)).toBeLessThan(60_000);
    await redis.restart();
    expect(Math.abs((await offMs()) - 3_600_000)).toBeLessThan(60_000);
    await redis.stop();
    const other = await startRedis();
    expect(() => other.stepClock(1)).toThrow("clock: 'stepped'");
    await other.stop();
  });

  it('starts again on the same port, without its data', async () => {
    const redis = await startRedis();
    const { port, pid } = redis;
    await withRedis(port, (client) => client.set('key', 'value'));
    await redis.restart();
    expect(redis.port).toBe(port);
    expect(redis.pid).not.toBe(pid);
    expect(isRunning(pid)).toBe(false);
    expect(await withRedis(port, (client) => client.get('key'))).toBeNull();
    await redis.stop();
  });

  it('finds a port for each of many that start at once', async () => {
    const servers = await Promise.all(Array.from({ length: 8 }, () => startRedis()));
    expect(new Set(servers.map(({ port }) => port)).size).toBe(8);
    await Promise.all(servers.map((server) => server.stop()));
  });

  it('says what the server said when it cannot start', async () => {
    await expect(startRedis({ config: { 'no-such-directive': 1 } })).rejects.toThrow(
      'no-such-directive',
    );
  });

  it('does not take a server of someone else for its own', async () => {
    const first = await startRedis();
    await expect(startRedis({ port: first.port })).rejects.toThrow(/address already in use/i);
    await first.stop();
  });
});

const isRunning = (pid: number): boolean => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};
