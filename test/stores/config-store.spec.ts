import { Cluster, Redis } from 'ioredis';
import { SystemClock } from '../../lib/common/clock.js';
import { type ConfigDraft, type ConfigStore } from '../../lib/stores/config-store.js';
import { MemoryConfig } from '../../lib/stores/memory/memory-config.js';
import { RedisConfig } from '../../lib/stores/redis/redis-config.js';
import { InProcessRedis } from '../../lib/testing/index.js';
import { errorWith } from '../support/errors.js';
import { startRedis, startRedisCluster, stopAll, until } from '../support/index.js';

const TIMEOUT_MS = 5000;

let drafts = 0;
function draft(more: Partial<ConfigDraft> = {}): ConfigDraft {
  return {
    ...{ id: `draft-${++drafts}`, kind: 'update', by: 'ann', effectiveAtMs: 0, hash: 'h' },
    ...{ code: {}, file: {}, patch: {}, staged: [] },
    ...more,
  };
}

interface Stand {
  /** Another node's view of the same configuration. */
  open(): ConfigStore;
  end(): Promise<void>;
}

const stands: Record<string, () => Promise<Stand>> = {
  memory: () => {
    const store = new MemoryConfig(new SystemClock());
    return Promise.resolve({ open: () => store, end: () => Promise.resolve() });
  },
  redis: async () => {
    const { url } = await startRedis();
    // As an application might have it: its own prefix, numbers as texts, connected when needed.
    return onClients(
      () => new Redis(url, { keyPrefix: 'app:', stringNumbers: true, lazyConnect: true }),
    );
  },
  'a redis in process': () => {
    const { driver } = new InProcessRedis().store();
    return Promise.resolve(onClients(() => new driver!.Redis({ lazyConnect: true })));
  },
  'redis cluster': async () => {
    const { nodes } = await startRedisCluster({ masters: 3, replicasPerMaster: 0 });
    return onClients(() => new Cluster([...nodes], { redisOptions: { connectTimeout: 5000 } }));
  },
};

function onClients(connect: () => Redis | Cluster): Stand {
  const clients: (Redis | Cluster)[] = [];
  const stores: ConfigStore[] = [];
  return {
    open: () => {
      const client = connect();
      client.on('error', () => {});
      clients.push(client);
      const settings = { client, prefix: 'test', timeoutMs: TIMEOUT_MS };
      const store = new RedisConfig(settings, new SystemClock());
      stores.push(store);
      return store;
    },
    end: async () => {
      for (const store of stores) await store.close();
      for (const client of clients) client.disconnect();
      await stopAll();
    },
  };
}

describe.each(Object.keys(stands))('the configuration in %s', (name) => {
  let stand: Stand;
  let store: ConfigStore;
  let other: ConfigStore;

  beforeAll(async () => {
    stand = await stands[name]!();
    store = stand.open();
    other = stand.open();
  });

  afterAll(() => stand.end());

  const revision = async (): Promise<number> => (await store.read()).revision;

  it('is empty at first', async () => {
    const stored = await store.read();
    expect(stored).toEqual({ revision: 0, unchanged: false, nowMs: expect.any(Number) as number });
    expect(Math.abs(stored.nowMs - Date.now())).toBeLessThan(60_000);
    expect(await store.history(10)).toEqual([]);
    expect(await store.acknowledgements()).toEqual([]);
  });

  it('keeps a record as it is, and the one before it', async () => {
    const layers = {
      code: { shop: { document: { policies: {} }, version: 2 } },
      file: { shop: { document: { list: [] }, version: 0.5 } },
    };
    const first = draft({ ...layers, patch: { policies: { 'ü "{}"': null } }, kind: 'code' });
    const written = await store.write(first, 0);
    expect(written).toMatchObject({ written: true, revision: 1 });
    const record = { ...first, revision: 1, atMs: written.nowMs };
    expect((await other.read()).current).toEqual(record);

    await other.write(draft({ by: 'ben', effectiveAtMs: 1e15 }), 1);
    const stored = await store.read();
    expect(stored).toMatchObject({ revision: 2, unchanged: false, previous: record });
    expect(stored.current).toMatchObject({ revision: 2, by: 'ben', effectiveAtMs: 1e15 });
  });

  it('does not send a record again to who has it', async () => {
    const { current } = await store.read();
    const again = await store.read(current!.id);
    expect(again).toMatchObject({ revision: current!.revision, unchanged: true });
    expect(again.current).toBeUndefined();
    expect((await store.read('another')).unchanged).toBe(false);
  });

  it('takes one of two writers who replace the same revision', async () => {
    const before = await revision();
    const answers = await Promise.all([
      store.write(draft({ by: 'ann' }), before),
      other.write(draft({ by: 'ben' }), before),
    ]);
    expect(answers.filter(({ written }) => written)).toHaveLength(1);
    expect(answers.map((answer) => answer.revision)).toEqual([before + 1, before + 1]);
    expect(await store.write(draft(), before)).toMatchObject({ written: false });
    expect(await revision()).toBe(before + 1);
  });

  it('writes a draft once, however often it is sent', async () => {
    const before = await revision();
    const twice = draft();
    const first = await store.write(twice, before);
    expect(await other.write(twice, before)).toMatchObject({
      written: true,
      revision: first.revision,
    });
    expect(await revision()).toBe(before + 1);
    const ids = (await store.history(100)).map(({ id }) => id);
    expect(ids.filter((id) => id === twice.id)).toHaveLength(1);
  });

  it('writes above a revision that somebody has seen', async () => {
    const before = await revision();
    const written = await store.write(draft({ kind: 'restore' }), before, 500);
    expect(written).toMatchObject({ written: true, revision: 501 });
    expect((await store.read()).current).toMatchObject({ revision: 501, kind: 'restore' });
  });

  it('tells the last revisions, newest first', async () => {
    await store.write(draft({ by: 'cid' }), await revision());
    const two = await other.history(2);
    expect(two.map(({ revision, by }) => [revision, by])).toEqual([
      [502, 'cid'],
      [501, 'ann'],
    ]);
    expect(await store.history(0)).toEqual([]);
  });

  it('refuses a record of more than 1 MiB, and stays as it was', async () => {
    const before = await revision();
    const large = draft({ patch: { text: 'x'.repeat(1024 * 1024) } });
    await expect(store.write(large, before)).rejects.toEqual(
      errorWith({ code: 'INVALID_ARGUMENT', field: 'config' }),
    );
    expect(await revision()).toBe(before);
  });

  it('knows what each node says until it is silent for too long', async () => {
    await store.acknowledge({ node: 'a', revision: 3, status: 'applied' }, 60_000);
    await store.acknowledge({ node: 'a', revision: 4, status: 'applied' }, 60_000);
    const reason = 'y'.repeat(10_000);
    const refusal = { node: 'b', revision: 3, status: 'refused', about: 4 } as const;
    await other.acknowledge({ ...refusal, reason }, 60_000);
    await other.acknowledge({ node: 'c', revision: 1, status: 'refused', about: 2 }, 1);
    const living = await until(async () => {
      const acks = await store.acknowledgements();
      return acks.every(({ node }) => node !== 'c') ? acks : undefined;
    });
    const byNode = living.sort((x, y) => (x.node < y.node ? -1 : 1));
    expect(byNode).toMatchObject([{ node: 'a', revision: 4, status: 'applied' }, refusal]);
    expect(byNode[1]!.reason!.length).toBeLessThan(1000);
    expect(byNode[0]!.atMs).toBeGreaterThan(1e12);

    await store.withdraw('a');
    expect((await other.acknowledgements()).map(({ node }) => node)).toEqual(['b']);
  });

  it('hints at what is written', async () => {
    const heard: (number | undefined)[] = [];
    const end = await other.subscribe((revision) => heard.push(revision));
    // Written again until it is heard, since a subscription takes its time.
    const told = await until(async () => {
      const { revision: written } = await store.write(draft(), await revision());
      return until(() => heard.includes(written) && written, { timeoutMs: 500 });
    });
    expect(heard).toContain(told);
    end();
    const { length } = heard;
    await store.write(draft(), await revision());
    await store.read();
    expect(heard).toHaveLength(length);
  });

  it('keeps a thousand revisions', async () => {
    let last = await revision();
    for (let i = 0; i < 1010; i++) last = (await store.write(draft(), last)).revision;
    const all = await store.history(5000);
    expect(all).toHaveLength(1000);
    expect(all[0]!.revision).toBe(last);
    expect(all[999]!.revision).toBe(last - 999);
  });

  it('keeps fewer revisions if they are large', async () => {
    let last = await revision();
    const patch = { text: 'z'.repeat(1_000_000) };
    for (let i = 0; i < 18; i++) last = (await store.write(draft({ patch }), last)).revision;
    const all = await store.history(5000);
    expect(all.length).toBeGreaterThan(10);
    expect(all.length).toBeLessThan(18);
    expect(all[0]!.revision).toBe(last);
    expect(await store.read()).toMatchObject({ current: { revision: last } });
  });
});
