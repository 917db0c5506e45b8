import { Readable } from 'node:stream';
import { type FallbackLevels } from '../../lib/degradation/core/contract.js';
import { seal, unseal } from '../../lib/stores/envelope.js';
import { type SharedCache } from '../../lib/stores/shared-cache.js';
import { settle } from '../support/manual-clock.js';
import { house } from './parts.js';

const LEVELS: FallbackLevels = {};
const BODY = { name: 'lamp', price: 12 };

describe('a normal answer', () => {
  it('is stored again only after a third of its time', () => {
    const { core, clock } = house();
    const { caches } = core;
    expect(caches.isDue(LEVELS, 'k')).toBe(true);
    caches.store(LEVELS, 'k', BODY);
    clock.advance(9_999);
    expect(caches.isDue(LEVELS, 'k')).toBe(false);
    expect(caches.isDue(LEVELS, 'other')).toBe(true);
    clock.advance(1);
    expect(caches.isDue(LEVELS, 'k')).toBe(true);
  });

  it('costs a hot route a few writes, not one per request', () => {
    const { core, clock } = house();
    let writes = 0;
    for (let i = 0; i < 60_000; i++) {
      clock.advance(1);
      if (core.caches.isDue(LEVELS, 'k') && core.caches.store(LEVELS, 'k', BODY)) writes++;
    }
    expect(writes).toBe(6);
  });

  it('is stored again once others have taken its place', () => {
    const { core } = house({ maxEntries: 2 });
    for (const key of ['a', 'b', 'c']) core.caches.store(LEVELS, key, BODY);
    expect(['a', 'b', 'c'].map((key) => core.caches.isDue(LEVELS, key))).toEqual([
      true,
      false,
      false,
    ]);
  });

  it.each<[string, FallbackLevels, unknown]>([
    ['not kept', LEVELS, new Map()],
    ['larger than all may be', LEVELS, 'x'.repeat(5000)],
    ['stored for others alone', { level2: false }, BODY],
  ])('is left alone for as long if it is %s, also after another one', (_, levels, body) => {
    const { core, clock } = house({ maxBytes: 2000 });
    core.caches.store(LEVELS, 'k', BODY);
    clock.advance(10_000);
    expect(core.caches.isDue(levels, 'k')).toBe(true);
    core.caches.store(levels, 'k', body);
    expect(core.caches.isDue(levels, 'k')).toBe(false);
    clock.advance(10_000);
    expect(core.caches.isDue(levels, 'k')).toBe(true);
  });

  it('is not stored where both levels are off', () => {
    const { core } = house();
    expect(core.caches.isDue({ level1: false, level2: false }, 'k')).toBe(false);
    expect(core.caches.isDue({ level1: false }, 'k')).toBe(true);
    expect(core.caches.isDue({ level2: false }, 'k')).toBe(true);
  });

  it('is a copy: nobody can change it afterwards', () => {
    const { core } = house();
    const body = { tags: ['a'] };
    core.caches.store(LEVELS, 'k', body);
    body.tags.push('b');
    const first = core.caches.readProcess(LEVELS, 'k')?.value as typeof body;
    first.tags.push('c');
    expect(core.caches.readProcess(LEVELS, 'k')?.value).toEqual({ tags: ['a'] });
  });

  class Secretive {
    constructor(readonly hash: string) {}
  }

  it.each<[string, unknown, 'classes' | 'notJson' | 'tooBig']>([
    ['an instance of a class, whose serialiser would be lost', new Secretive('x'), 'classes'],
    ['one inside a list', { items: [new Secretive('x')] }, 'classes'],
    ['a map', new Map([['a', 1]]), 'classes'],
    ['bytes', Buffer.from('x'), 'classes'],
    ['a stream', Readable.from(['x']), 'classes'],
    ['nothing', undefined, 'notJson'],
    ['a function', () => 1, 'notJson'],
    ['a big integer', { a: 1n }, 'notJson'],
    ['more than 1 MiB', 'x'.repeat(1_048_577), 'tooBig'],
    ['more than 1 MiB in bytes, not in signs', '品'.repeat(400_000), 'tooBig'],
  ])('is not kept if it is %s, counted, and not tried per request', (_name, body, why) => {
    const { core } = house();
    expect(core.caches.store(LEVELS, 'k', body)).toBe(false);
    expect(core.caches.stats().refused).toMatchObject({ [why]: 1 });
    expect(core.caches.stats().stored).toBe(0);
    expect(core.caches.isDue(LEVELS, 'k')).toBe(false);
  });

  it('that loops is not kept, as no JSON', () => {
    const { core } = house();
    const body: Record<string, unknown> = {};
    body.self = body;
    expect(core.caches.store(LEVELS, 'k', body)).toBe(false);
    expect(core.caches.stats().refused.notJson).toBe(1);
  });

  it('of a class comes back as one where the route says how', () => {
    const { core } = house();
    const levels: FallbackLevels = { revive: (body) => new Secretive((body as Secretive).hash) };
    expect(core.caches.store(levels, 'k', new Secretive('x'))).toBe(true);
    expect(core.caches.readProcess(levels, 'k')?.value).toBeInstanceOf(Secretive);
  });

  it('may have dates and others that say how they are written', () => {
    const { core } = house();
    expect(core.caches.store(LEVELS, 'k', { at: new Date(0) })).toBe(true);
    expect(core.caches.readProcess(LEVELS, 'k')?.value).toEqual({ at: '1970-01-01T00:00:00.000Z' });
  });
});

describe('an envelope', () => {
  it.each([BODY, [1, 2], 'text', 0, false, null, { body: 1, v: 2 }])('keeps %j', (body) => {
    const sealed = seal({ v: 'a', t: 5, kind: 'json', body });
    expect(unseal(sealed!.text)).toEqual({ v: 'a', t: 5, kind: 'json', body });
    expect(sealed!.bytes).toBe(Buffer.byteLength(sealed!.text));
  });

  it.each([
    '',
    'null',
    '[]',
    '"text"',
    '{"v":1}',
    '{"v":1,"t":2,"kind":"json"}',
    '{"v":{},"t":2,"kind":"json","body":1}',
    '{"v":1,"t":null,"kind":"json","body":1}',
    '{"v":1,"t":1e999,"kind":"json","body":1}',
    '{"v":1,"t":2,"kind":3,"body":1}',
    '{"v":1,"t":2,"kind":"json","body":1',
    '\u0000\u0001binary',
  ])('is nothing else: %j', (text) => {
    expect(unseal(text)).toBeUndefined();
  });
});

describe('the process cache', () => {
  it('gives what is up to five minutes old (V-E29)', () => {
    const { core, clock } = house();
    core.caches.store(LEVELS, 'k', BODY);
    clock.advance(299_000);
    expect(core.caches.readProcess(LEVELS, 'k')).toEqual({
      value: BODY,
      ageMs: 299_000,
      ttlMs: 1_000,
    });
    clock.advance(2_000);
    expect(core.caches.readProcess(LEVELS, 'k')).toBeUndefined();
  });

  it('is bounded in entries, whatever the number of keys', () => {
    const { core } = house({ maxEntries: 100 });
    for (let i = 0; i < 10_000; i++) core.caches.store(LEVELS, `k${i}`, BODY);
    expect(core.caches.stats().process.entries).toBe(100);
    expect(core.caches.readProcess(LEVELS, 'k9999')?.value).toEqual(BODY);
    expect(core.caches.readProcess(LEVELS, 'k0')).toBeUndefined();
  });

  it('is bounded in bytes', () => {
    const { core } = house({ maxBytes: 1_000_000 });
    for (let i = 0; i < 100; i++) core.caches.store(LEVELS, `k${i}`, 'x'.repeat(100_000));
    const { entries, bytes } = core.caches.stats().process;
    expect(entries).toBe(9);
    expect(bytes).toBeLessThanOrEqual(1_000_000);
  });

  it('keeps the newest when it becomes smaller while it runs', () => {
    const { core } = house();
    for (let i = 0; i < 10; i++) core.caches.store(LEVELS, `k${i}`, i);
    core.prepare({ maxEntries: 3 })();
    const left = Array.from({ length: 10 }, (_, i) => core.caches.readProcess(LEVELS, `k${i}`));
    expect(left.map((one) => one?.value).filter((value) => value !== undefined)).toEqual([7, 8, 9]);
  });
});

describe('the shared cache', () => {
  const read = (core: ReturnType<typeof house>['core'], levels = LEVELS) =>
    core.caches.readShared(levels, 'k', 50);

  it('gives what is up to 30 s old, in a promotion up to 60 s (V-E28)', async () => {
    const [normal, promo] = [house(), house({ level1Ttl: '60s' })];
    for (const { core, clock } of [normal, promo]) {
      core.caches.store(LEVELS, 'k', BODY);
      clock.advance(29_000);
      expect(await read(core)).toEqual(expect.objectContaining({ value: BODY, ageMs: 29_000 }));
      clock.advance(2_000);
    }
    expect(await read(normal.core)).toBeUndefined();
    promo.clock.advance(28_000);
    expect(await read(promo.core)).toMatchObject({ value: BODY, ageMs: 59_000 });
    promo.clock.advance(2_000);
    expect(await read(promo.core)).toBeUndefined();
  });

  it('is what the process has itself where there is no store to share, kept once', async () => {
    const { core, clock } = house();
    core.caches.store(LEVELS, 'k', BODY);
    expect(await read(core)).toMatchObject({ value: BODY });
    clock.advance(31_000);
    expect(await read(core)).toBeUndefined();
    expect(core.caches.readProcess(LEVELS, 'k')).toMatchObject({ value: BODY, ageMs: 31_000 });
    const { shared, process } = core.caches.stats();
    expect([shared, process]).toMatchObject([undefined, { entries: 1, hits: 2, misses: 0 }]);
    core.caches.store({ level2: false }, 'young', BODY);
    expect(await core.caches.readShared({ level2: false }, 'young', 50)).toBeDefined();
    expect(core.caches.readProcess({ level2: false }, 'young')).toBeUndefined();
  });

  it('changes its time while it runs, for all or for one resource', async () => {
    const { core, clock } = house();
    const page: FallbackLevels = { resource: 'page' };
    core.prepare({ level1Ttl: '60s', resources: { page: { level1Ttl: '5s' } } })();
    core.caches.store(LEVELS, 'k', BODY);
    clock.advance(40_000);
    expect(await read(core)).toMatchObject({ ageMs: 40_000, ttlMs: 20_000 });
    expect(await read(core, page)).toBeUndefined();
    core.prepare({})();
    expect(await read(core)).toBeUndefined();
    expect(core.caches.stats().rejected.age).toBe(2);
  });

  it.each<[string, FallbackLevels, FallbackLevels, 'version' | 'kind' | 'body']>([
    ['an older schema', { schemaVersion: 1 }, { schemaVersion: 2 }, 'version'],
    ['a version of another type', { schemaVersion: 1 }, { schemaVersion: '1' }, 'version'],
    ['another sort of answer', { kind: 'http' }, { kind: 'rpc' }, 'kind'],
    ['a body that the route refuses', {}, { accepts: Array.isArray }, 'body'],
    [
      'a body on which the check throws',
      {},
      {
        accepts: () => {
          throw new Error('no');
        },
      },
      'body',
    ],
    [
      'a body that cannot be revived',
      {},
      {
        revive: () => {
          throw new Error('no');
        },
      },
      'body',
    ],
  ])('does not give %s, and counts it', async (_name, writer, reader, why) => {
    const { core } = house();
    core.caches.store(writer, 'k', BODY);
    expect(await read(core, reader)).toBeUndefined();
    expect(core.caches.readProcess(reader, 'k')).toBeUndefined();
    expect(core.caches.stats().rejected[why]).toBe(2);
  });
});

/** A cache that answers when it is told to. */
class SlowCache implements SharedCache {
  reading = 0;
  readonly asked: string[] = [];
  private readonly waiting: { resolve: () => void; reject: (error: Error) => void }[] = [];

  get(key: string): Promise<undefined> {
    this.asked.push(key);
    this.reading++;
    return new Promise<undefined>((resolve, reject) => {
      this.waiting.push({ resolve: () => resolve(undefined), reject });
    }).finally(() => this.reading--);
  }

  set = (): boolean => true;
  close = (): void => {};
  stats = () => ({
    hits: 0,
    misses: 0,
    unreadable: 0,
    stored: 0,
    tooBig: 0,
    dropped: 0,
    failedWrites: 0,
    strayReplies: 0,
  });

  answerAll(error?: Error): void {
    for (const { resolve, reject } of this.waiting.splice(0)) {
      if (error === undefined) resolve();
      else reject(error);
    }
  }
}

describe('reading the shared cache', () => {
  it('is done once for all who ask for the same key', async () => {
    const shared = new SlowCache();
    const { core } = house({}, { shared });
    const reads = Array.from({ length: 50 }, () => core.caches.readShared(LEVELS, 'k', 50));
    shared.answerAll();
    await Promise.all(reads);
    expect(shared.asked).toEqual(['k']);
    expect(core.caches.stats().shared).toMatchObject({ joined: 49 });
    const again = core.caches.readShared(LEVELS, 'k', 50);
    shared.answerAll();
    await again;
    expect(shared.asked).toHaveLength(2);
  });

  it('is bounded: further keys are missed at once, also while nobody waits any more', async () => {
    const shared = new SlowCache();
    const { core, clock } = house({ maxReads: 3 }, { shared });
    const reads = ['a', 'b', 'c'].map((key) => core.caches.readShared(LEVELS, key, 50));
    expect(await core.caches.readShared(LEVELS, 'd', 50)).toBeUndefined();
    clock.advance(50);
    expect(await Promise.all(reads)).toEqual([undefined, undefined, undefined]);
    expect(await core.caches.readShared(LEVELS, 'e', 50)).toBeUndefined();
    expect(shared.asked).toEqual(['a', 'b', 'c']);
    expect(core.caches.stats().shared).toMatchObject({ busy: 2 });
    // That there was no room says nothing about the cache.
    expect(core.caches.sharedIsAway).toBe(false);
  });

  it('waits no longer than a caller has time, though others wait on', async () => {
    const shared = new SlowCache();
    const { core, clock } = house({}, { shared });
    const done: string[] = [];
    const patient = core.caches.readShared(LEVELS, 'k', 50).then(() => done.push('patient'));
    const hasty = core.caches.readShared(LEVELS, 'k', 5).then(() => done.push('hasty'));
    await clock.advanceAsync(5);
    expect(done).toEqual(['hasty']);
    shared.answerAll();
    await Promise.all([patient, hasty]);
  });

  it('stops after three failures in a row, and tries once in a while', async () => {
    const shared = new SlowCache();
    const { core, clock } = house({}, { shared });
    const fail = async (key: string): Promise<void> => {
      const read = core.caches.readShared(LEVELS, key, 50);
      shared.answerAll(new Error('down'));
      await read;
      clock.advance(1);
    };
    for (let i = 0; i < 3; i++) await fail(`k${i}`);
    expect(core.caches.sharedIsAway).toBe(true);
    for (let i = 0; i < 100; i++) await core.caches.readShared(LEVELS, `more${i}`, 50);
    expect(shared.asked).toHaveLength(3);
    clock.advance(1000);
    // The one that tries hangs; that does not keep it shut for ever.
    void core.caches.readShared(LEVELS, 'try', 50);
    await core.caches.readShared(LEVELS, 'too many', 50);
    expect(shared.asked).toHaveLength(4);
    clock.advance(2000);
    const second = core.caches.readShared(LEVELS, 'try again', 50);
    shared.answerAll();
    await second;
    expect(core.caches.sharedIsAway).toBe(false);
    expect(core.caches.stats().shared).toMatchObject({ failed: 3, skipped: 101 });
  });

  it('takes what failed together for one failure', async () => {
    const shared = new SlowCache();
    const { core, clock } = house({}, { shared });
    const reads = Array.from({ length: 50 }, (_, i) => core.caches.readShared(LEVELS, `k${i}`, 50));
    clock.advance(1);
    shared.answerAll(new Error('hiccup'));
    await Promise.all(reads);
    expect(core.caches.sharedIsAway).toBe(false);
  });
});

describe('a warm-up', () => {
  it('fills both levels, each key once, a few at a time', async () => {
    const { core } = house();
    let running = 0;
    let most = 0;
    const loaded: string[] = [];
    const keys = Array.from({ length: 40 }, (_, i) => `k${i % 30}`);
    const report = await core.caches.warmUp(LEVELS, keys, async (key) => {
      loaded.push(key);
      most = Math.max(most, ++running);
      await settle();
      running--;
      if (key === 'k1') throw new Error('not there');
      return key === 'k2' ? undefined : { key };
    });
    expect(report).toEqual({ loaded: 28, skipped: 1, failed: 1 });
    expect(loaded).toHaveLength(30);
    expect(most).toBe(8);
    expect(core.caches.readProcess(LEVELS, 'k7')?.value).toEqual({ key: 'k7' });
    expect((await core.caches.readShared(LEVELS, 'k7', 50))?.value).toEqual({ key: 'k7' });
  });

  it('takes what is too big for skipped', async () => {
    const { core } = house();
    const report = await core.caches.warmUp(LEVELS, ['k'], () => 'x'.repeat(2_000_000));
    expect(report).toEqual({ loaded: 0, skipped: 1, failed: 0 });
  });
});
