import { Redis } from 'ioredis';
import { SystemClock } from '../../lib/common/clock.js';
import { hashOf } from '../../lib/config/document/json.js';
import { type ConfigRefusal } from '../../lib/config/rate-limit-config.js';
import { VersionedConfig } from '../../lib/config/versioned-config.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { errorWith } from '../support/errors.js';
import { startProxy, startRedis, stopAll, until, type RedisProcess } from '../support/index.js';
import { limitOf, rateOf } from './fleet.js';

const HOUR_MS = 3_600_000;
const QUICK_MS = 100;
const CONFIG = 'test:{config}:current';
const HISTORY = 'test:{config}:history';
const CHANNEL = 'test:{config}:revision';

describe('a configuration in Redis', () => {
  let server: RedisProcess;
  let admin: Redis;
  const ends: (() => Promise<void> | void)[] = [];

  beforeAll(async () => {
    server = await startRedis();
  });

  beforeEach(async () => {
    admin = new Redis(server.adminUrl);
    ends.push(() => admin.disconnect());
    await admin.flushall();
  });

  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end();
  });

  afterAll(() => stopAll());

  async function open(nodeId: string, url = server.url, pollMs = HOUR_MS) {
    const client = new Redis(url, { retryStrategy: () => 20 });
    client.on('error', () => {});
    const clock = new SystemClock();
    const store = new RedisConfig({ client, prefix: 'test', timeoutMs: 5000 }, clock);
    const refusals: ConfigRefusal[] = [];
    const config = new VersionedConfig({
      ...{ store, nodeId, clock, pollMs, code: { document: limitOf(100) } },
      report: { info: () => {}, warn: () => {}, error: () => {} },
    });
    config.refused$.subscribe((refusal) => refusals.push(refusal));
    await config.start();
    ends.push(async () => {
      await config.close();
      client.disconnect();
    });
    return { config, store, refusals, rate: () => rateOf(config.current()) };
  }

  function countReads(store: RedisConfig): () => number {
    const read = store.read.bind(store);
    let count = 0;
    store.read = (...args) => {
      count++;
      return read(...args);
    };
    return () => count;
  }

  const listeners = async (): Promise<number> =>
    ((await admin.pubsub('NUMSUB', CHANNEL)) as [string, number])[1];

  it('reaches others by its message long before they would look', async () => {
    const [a, b] = [await open('a'), await open('b')];
    await until(async () => (await listeners()) === 2);
    const { revision } = await a.config.update(limitOf(200));
    await until(() => b.rate() === '200/s');
    expect(b.config.current().revision).toBe(revision);
    await until(() => a.config.isEveryoneOn(revision));
    expect((await a.config.nodes()).map(({ node }) => node).sort()).toEqual(['a', 'b']);
  });

  it('is read, whatever a message says: a forged record is neither applied nor written', async () => {
    const a = await open('a', server.url, QUICK_MS);
    await until(async () => (await listeners()) === 1);
    await a.config.update(limitOf(200));
    const [record] = await a.config.history(1);
    const stored = await admin.hgetall(CONFIG);
    const text = JSON.parse(stored.current!) as object;
    const forged = { ...text, id: 'forged', revision: 3, patch: limitOf(1_000_000) };
    const reads = countReads(a.store);
    await admin.publish(CHANNEL, JSON.stringify({ after: record!.id, record: forged }));
    await admin.publish(CHANNEL, JSON.stringify(forged));
    await admin.publish(CHANNEL, '3');
    // Looks and polls come and go, and none of them finds anything but what is stored.
    await until(() => reads() >= 3);
    expect([a.config.current().revision, a.rate()]).toEqual([2, '200/s']);
    expect(await admin.hgetall(CONFIG)).toEqual(stored);
    expect(a.refusals).toEqual([]);
  });

  it('costs next to nothing however many messages are forged: a look in progress serves all', async () => {
    const a = await open('a');
    await until(async () => (await listeners()) === 1);
    const reads = countReads(a.store);
    await Promise.all(Array.from({ length: 500 }, (_, n) => admin.publish(CHANNEL, `${n + 9}`)));
    await a.config.update(limitOf(200));
    await a.config.nodes();
    expect(reads()).toBeLessThan(100);
  });

  it('is checked by every process, also if its writer says that it was', async () => {
    const a = await open('a');
    await a.config.update(limitOf(200));
    const text = (await admin.hget(CONFIG, 'current'))!;
    const record = JSON.parse(text) as { patch: object; hash: string };
    const patch = { ...record.patch, nonsense: { of: 1 } };
    const { document } = a.config.current();
    const hash = hashOf({ ...document, nonsense: { of: 1 } });
    await admin.hset(CONFIG, 'current', JSON.stringify({ ...record, patch, hash }));
    const b = await open('b');
    await until(() => b.refusals.length > 0);
    expect(b.refusals[0]).toMatchObject({ revision: 2, kind: 'invalid' });
    expect(b.refusals[0]!.reason).toContain('nonsense');
  });

  it.each([Number.MAX_SAFE_INTEGER, 2 ** 53, 2 ** 50])(
    'whose revision somebody set to %d is damaged, and written again by those who have it',
    async (revision) => {
      const a = await open('a', server.url, QUICK_MS);
      await a.config.update(limitOf(200));
      const text = (await admin.hget(CONFIG, 'current'))!;
      const current = text.replace('"revision":2', `"revision":${revision}`);
      await admin.hset(CONFIG, { revision: String(revision), id: 'x', current });
      await until(async () => Number(await admin.hget(CONFIG, 'revision')) === 3);
      const { revision: next } = await a.config.update(limitOf(300));
      expect([next, a.rate()]).toEqual([4, '300/s']);
    },
  );

  it('is checked again if it is not what its writer has checked', async () => {
    const a = await open('a');
    await a.config.update(limitOf(200));
    const text = (await admin.hget(CONFIG, 'current'))!;
    await admin.hset(CONFIG, 'current', text.replace('"200/s"', '"-5/s"'));
    const b = await open('b');
    await until(() => b.refusals.length > 0);
    expect(b.refusals[0]).toMatchObject({ revision: 2, kind: 'invalid' });
    expect(b.refusals[0]!.reason).toContain('policies.api.rate');
  });

  it('is refused only over what is stored, not over what was known', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const [a, b] = [await open('a'), await open('b', proxy.url)];
    proxy.dropPushes(true);
    await a.config.update({ policies: { late: { rate: 5 } } });
    // Neither the revision nor the policy has reached b yet.
    await b.config.update({ policies: { late: { burst: 9 } } }, { expectedRevision: 2 });
    expect(b.config.current()).toMatchObject({ revision: 3 });
    expect(b.config.current().document.policies).toMatchObject({ late: { rate: 5, burst: 9 } });
    await proxy.close();
  });

  it('reaches others within a poll where messages are not allowed', async () => {
    await admin.call('ACL', 'SETUSER', 'mute', 'on', 'nopass', '~*', '+@all', 'resetchannels');
    const url = server.url.replace('//', '//mute:x@');
    const [a, b] = [await open('a', url, QUICK_MS), await open('b', url, QUICK_MS)];
    const { revision } = await a.config.update(limitOf(200));
    await until(() => b.config.current().revision === revision);
    expect(b.rate()).toBe('200/s');
    expect(await listeners()).toBe(0);
  });

  it('V-A44: reaches a process that was cut off as soon as it is connected again', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const [a, b] = [await open('a'), await open('b', proxy.url)];
    await until(async () => (await listeners()) === 2);
    await proxy.cut();
    await a.config.update(limitOf(200));
    await a.config.update(limitOf(300));
    expect(b.rate()).toBe('100/s');
    await proxy.restore();
    await until(() => b.rate() === '300/s');
    // And it listens again.
    await until(async () => (await listeners()) === 2);
    await a.config.update(limitOf(400));
    await until(() => b.rate() === '400/s');
  });

  it('is written once though the answer was lost with the connection', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const { config, store, rate } = await open('a', proxy.url);
    const write = store.write.bind(store);
    store.write = (...args) => {
      store.write = write;
      proxy.cutAtNextReply();
      return write(...args);
    };
    const { revision } = await config.update(limitOf(200));
    expect([revision, rate()]).toEqual([2, '200/s']);
    expect(await config.history()).toHaveLength(2);
  });

  it('is not read or written while Redis is away', async () => {
    const proxy = await startProxy({ targetPort: server.port });
    const client = new Redis(proxy.url, { retryStrategy: () => 20 });
    client.on('error', () => {});
    const clock = new SystemClock();
    const store = new RedisConfig({ client, prefix: 'test', timeoutMs: 100 }, clock);
    await until(() => store.read());
    await proxy.cut();
    await expect(store.read()).rejects.toEqual(errorWith({ code: 'STORE_TIMEOUT' }));
    await proxy.restore();
    await until(() => store.read());
    client.disconnect();
    await until(() => client.status === 'end');
    await expect(store.read()).rejects.toEqual(errorWith({ code: 'STORE_UNAVAILABLE' }));
  });

  describe('that was staged', () => {
    let stepped: RedisProcess;

    beforeEach(async () => {
      stepped = await startRedis({ clock: 'stepped' });
    });

    const kinds = async ({ config }: { readonly config: VersionedConfig }): Promise<string[]> =>
      (await config.history()).map(({ kind }) => kind).reverse();

    it('takes effect at its time, once, though the next poll is far off', async () => {
      const [a, b] = [await open('a', stepped.url), await open('b', stepped.url)];
      const effectiveAt = Date.now() + HOUR_MS;
      await a.config.update(limitOf(200), { effectiveAt, by: 'ann' });
      stepped.stepClock(HOUR_MS - 300);
      // From here on both know what time it is.
      await Promise.all([a.config.staged(), b.config.staged()]);
      await until(() => a.rate() === '200/s' && b.rate() === '200/s');
      expect([a.config.current().revision, b.config.current().revision]).toEqual([3, 3]);
      expect(a.config.current()).not.toHaveProperty('staged');
      expect(await kinds(a)).toEqual(['code', 'stage', 'update']);
      const [settled] = await b.config.history(1);
      expect(settled).toMatchObject({ by: 'ann', effectiveAtMs: effectiveAt, about: { id: 2 } });
      expect(settled!.atMs).toBeGreaterThanOrEqual(effectiveAt);
    });

    it('takes effect by the clock of Redis, whatever those of the processes say', async () => {
      const a = await open('a', stepped.url, QUICK_MS);
      const b = await open('b', stepped.url, QUICK_MS);
      const reads = [countReads(a.store), countReads(b.store)];
      await a.config.update(limitOf(200), { effectiveAt: Date.now() + HOUR_MS });
      await until(() => reads.every((count) => count() >= 2));
      expect([a.rate(), b.rate()]).toEqual(['100/s', '100/s']);
      stepped.stepClock(HOUR_MS);
      await until(() => a.rate() === '200/s' && b.rate() === '200/s');
      // A clock that goes back behind its time does not bring it back.
      stepped.stepClock(-2 * HOUR_MS);
      await b.config.update({ policies: { other: { rate: 7 } } });
      await until(() => a.config.current().revision === 4);
      expect([a.rate(), b.rate()]).toEqual(['200/s', '200/s']);
      expect(await kinds(a)).toEqual(['code', 'stage', 'update', 'update']);
    });
  });

  it('comes back after FLUSHALL, with all updates', async () => {
    const [a, b] = [await open('a', server.url, QUICK_MS), await open('b', server.url, QUICK_MS)];
    const { revision } = await a.config.update(limitOf(200));
    await until(() => b.config.current().revision === revision);
    await admin.flushall();
    const settled = await until(() => {
      const [one, other] = [a.config.current(), b.config.current()];
      return one.revision > revision && one.revision === other.revision ? one : undefined;
    });
    expect(rateOf(settled)).toBe('200/s');
    expect(b.rate()).toBe('200/s');
    expect(Number(await admin.hget(CONFIG, 'revision'))).toBe(settled.revision);
    expect([...a.refusals, ...b.refusals]).toContainEqual(
      expect.objectContaining({ kind: 'lost', revision }),
    );
  });

  it.each([
    ['not JSON', '{"revision":'],
    ['another thing', '{"revision":5,"hello":"world"}'],
    ['empty', ''],
  ])(
    'stays as it was if what is stored is %s, and is whole again by an update',
    async (_, text) => {
      const [a, b] = [await open('a'), await open('b')];
      await until(async () => (await listeners()) === 2);
      await a.config.update(limitOf(200));
      await until(() => b.rate() === '200/s');
      await admin.hset(CONFIG, { revision: 5, id: 'x', current: text });
      await admin.publish(CHANNEL, 'hello');
      await admin.publish(CHANNEL, '5');
      await until(() => b.refusals.length > 0 && a.refusals.length > 0);
      expect(b.refusals).toMatchObject([{ revision: 5, kind: 'unreadable' }]);
      expect([b.config.current().revision, b.rate()]).toEqual([2, '200/s']);
      const { revision } = await b.config.update({ policies: { other: { rate: '1/s' } } });
      expect(revision).toBe(6);
      await until(() => a.config.current().revision === 6);
      expect(a.rate()).toBe('200/s');
      expect(b.refusals).toHaveLength(1);
    },
  );

  it('starts with the revision before one that cannot be read', async () => {
    const a = await open('a');
    await a.config.update(limitOf(200));
    const { revision } = await a.config.update(limitOf(300));
    await admin.hset(CONFIG, { id: 'x', current: 'spoilt' });
    const b = await open('b');
    expect([b.config.current().revision, b.rate()]).toEqual([revision - 1, '200/s']);
    expect((await b.config.nodes()).find(({ node }) => node === 'b')).toMatchObject({
      ...{ revision: revision - 1, status: 'refused', about: revision },
    });
  });

  it('goes on if the stored revision is no number', async () => {
    const a = await open('a');
    await a.config.update(limitOf(200));
    await admin.hset(CONFIG, { revision: 'many', id: 'x' });
    const { revision } = await a.config.update(limitOf(300));
    expect(revision).toBeGreaterThan(2);
    expect((await a.store.read()).current).toMatchObject({ revision, patch: limitOf(300) });
  });

  it('counts the bytes of its history, also after somebody has spoilt the count', async () => {
    const { config } = await open('a');
    const isCounted = async (): Promise<boolean> => {
      const texts = await admin.lrange(HISTORY, 0, -1);
      const bytes = texts.reduce((sum, text) => sum + Buffer.byteLength(text), 0);
      return Number(await admin.hget(CONFIG, 'history_bytes')) === bytes;
    };
    for (let n = 0; n < 3; n++) await config.update(limitOf(n + 1));
    expect(await isCounted()).toBe(true);
    // Far too much: all but the newest go, and what is left is counted.
    await admin.hset(CONFIG, 'history_bytes', '9000000000');
    await config.update(limitOf(3));
    expect([await admin.llen(HISTORY), await isCounted()]).toEqual([1, true]);
    await admin.del(HISTORY);
    for (let n = 4; n < 6; n++) await config.update(limitOf(n + 1));
    expect([await admin.llen(HISTORY), await isCounted()]).toEqual([2, true]);
    await admin.hset(CONFIG, 'history_bytes', 'many');
    await config.update(limitOf(6));
    expect((await config.history()).length).toBeGreaterThan(1);
  });

  it('never expires', async () => {
    const a = await open('a');
    await a.config.update(limitOf(200));
    const keys = await admin.keys('test:*');
    expect(keys).toContain(CONFIG);
    for (const key of keys) expect([key, await admin.pttl(key)]).toEqual([key, -1]);
  });
});
