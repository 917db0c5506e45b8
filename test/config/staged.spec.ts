import fc from 'fast-check';
import { UnknownStagedError } from '../../lib/config/config-errors.js';
import { type ConfigLayer } from '../../lib/config/schema/check.js';
import { ACKNOWLEDGED_AFTER_MS } from '../../lib/config/acknowledger.js';
import { MemoryConfig } from '../../lib/stores/memory/memory-config.js';
import { errorWith } from '../support/errors.js';
import { type ManualClock } from '../support/manual-clock.js';
import { Fleet, limitOf, type FleetNode } from './fleet.js';

const HOUR = 3_600_000;
const code = { document: limitOf(100) };
/** All processes have tried by then. */
const SPREAD_MS = 21;

describe('an update that waits for its time', () => {
  let fleet: Fleet;

  beforeEach(() => {
    fleet = new Fleet();
  });

  afterEach(() => fleet.close());

  const nowMs = (): number => fleet.clock.epochMs(fleet.clock.now());
  const inMs = (ms: number): { effectiveAt: number } => ({ effectiveAt: nowMs() + ms });
  const pass = async (ms: number): Promise<void> => {
    await fleet.clock.advanceAsync(ms);
    await fleet.settle();
  };
  const other = (rate: number): ConfigLayer => ({ policies: { other: { rate } } });
  const kinds = async (node: FleetNode): Promise<string[]> =>
    (await node.config.history()).map(({ kind }) => kind).reverse();

  it('changes nothing but what waits, and takes effect everywhere at its time, once', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    const at = inMs(60_000);
    const written = await a.config.update(limitOf(200), { ...at, by: 'ann' });
    const waits = [{ id: 2, by: 'ann', effectiveAtMs: at.effectiveAt, patch: limitOf(200) }];
    expect(written).toMatchObject({ revision: 2, document: limitOf(100), staged: waits });
    await fleet.settle();
    expect(b.config.current()).toMatchObject({ revision: 2, staged: waits });
    expect(await b.config.staged()).toMatchObject(waits);
    await pass(59_999);
    expect([a.rate, b.rate]).toEqual(['100/s', '100/s']);
    await pass(1 + SPREAD_MS);
    expect([a.rate, b.rate]).toEqual(['200/s', '200/s']);
    expect([a.revision, b.revision]).toEqual([3, 3]);
    expect(a.config.current()).not.toHaveProperty('staged');
    await fleet.poll();
    expect(await kinds(a)).toEqual(['code', 'stage', 'update']);
    const [settled] = await a.config.history(1);
    expect(settled).toMatchObject({ by: 'ann', effectiveAtMs: at.effectiveAt, about: { id: 2 } });
    expect(b.infos).toEqual([
      expect.stringMatching(/^revision 2: update 2 by ann for .*Z is staged$/),
      expect.stringMatching(/^revision 3 is in use: update 2 by ann for .*Z$/),
    ]);
  });

  it('keeps nobody from other updates, and is laid over what holds then', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    await a.config.update(limitOf(200), inMs(60_000));
    await b.config.update(other(7));
    await b.config.update(limitOf(150));
    const c = await fleet.start('c', { code: { document: { ...limitOf(90), protection: {} } } });
    await fleet.settle();
    expect([a.rate, b.rate, c.rate]).toEqual(['150/s', '150/s', '150/s']);
    await pass(60_000 + SPREAD_MS);
    expect([a.rate, b.rate, c.rate]).toEqual(['200/s', '200/s', '200/s']);
    expect(a.config.current().document).toMatchObject(other(7));
    expect(await kinds(a)).toEqual(['code', 'stage', 'update', 'update', 'code', 'update']);
  });

  it('is one of up to 16, in order of time', async () => {
    const a = await fleet.start('a', { code });
    for (let i = 16; i >= 1; i--) await a.config.update(limitOf(i), inMs(i * 10_000));
    const times = (await a.config.staged()).map(({ effectiveAtMs }) => effectiveAtMs);
    expect(times).toHaveLength(16);
    expect([...times].sort((x, y) => x - y)).toEqual(times);
    await expect(a.config.update(limitOf(17), inMs(5000))).rejects.toEqual(
      errorWith({
        code: 'TOO_MANY_STAGED',
        message: expect.stringContaining('cancel one of') as never,
      }),
    );
    const seen: unknown[] = [];
    for (let i = 1; i <= 16; i++) {
      await pass(10_000);
      await pass(SPREAD_MS);
      seen.push(a.rate);
    }
    expect(seen).toEqual(Array.from({ length: 16 }, (_, i) => `${i + 1}/s`));
    expect(await a.config.staged()).toEqual([]);
  });

  it('is settled one by one, in order, by a process that starts when all of them are due', async () => {
    const a = await fleet.start('a', { code });
    for (let i = 1; i <= 16; i++) await a.config.update(limitOf(i), inMs(i * 1000));
    await a.config.update(other(5), { ...inMs(0), effectiveAt: nowMs() });
    await a.config.close();
    await fleet.clock.advanceAsync(HOUR);
    const b = await fleet.start('b', { code: { document: { ...limitOf(1), protection: {} } } });
    expect([b.rate, b.revision]).toEqual(['16/s', 35]);
    expect(b.config.current().document).toMatchObject(other(5));
    expect(b.config.current()).not.toHaveProperty('staged');
  });

  it('can be cancelled, by whom it is told', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    await a.config.update(limitOf(200), { ...inMs(60_000), by: 'ann' });
    await a.config.update(limitOf(300), { ...inMs(70_000), by: 'ann' });
    expect(await b.config.cancel(2, { by: 'ben' })).toMatchObject({
      revision: 4,
      staged: [{ id: 3 }],
    });
    await pass(60_000 + SPREAD_MS);
    expect(a.rate).toBe('100/s');
    await pass(10_000 + SPREAD_MS);
    expect(a.rate).toBe('300/s');
    expect(a.infos).toContainEqual(
      expect.stringMatching(/^revision 4: ben cancelled update 2 by ann/),
    );
    await expect(a.config.cancel(3)).rejects.toEqual(new UnknownStagedError(3, []));
    await expect(a.config.cancel(9, { expectedRevision: 1 })).rejects.toEqual(
      errorWith({ code: 'CONFIG_CONFLICT' }),
    );
  });

  it.each([
    ['an id that is none', 'x', 'id: expected a whole number above 0, got "x"'],
    ['an id of nobody', 7, 'no update 7 waits; there is 2, 3'],
  ])('does not cancel %s', async (_, id, message) => {
    const a = await fleet.start('a', { code });
    await a.config.update(limitOf(1), inMs(60_000));
    await a.config.update(limitOf(2), inMs(60_000));
    await expect(a.config.cancel(id as never)).rejects.toThrow(message);
    expect(a.revision).toBe(3);
  });

  it('cannot be for a time that is long past; one that is just past is now', async () => {
    const a = await fleet.start('a', { code });
    await expect(a.config.update(limitOf(2), inMs(-61_000))).rejects.toThrow(
      /^effectiveAt: expected a time to come: the store's clock says .*Z; leave it out for at once, got "/,
    );
    expect(await a.config.update(limitOf(3), inMs(-59_000))).toMatchObject({ revision: 2 });
    expect(a.rate).toBe('3/s');
  });

  it.each([
    ['is wrong in itself', { policies: { api: { rate: '0/s' } } }, 'INVALID_CONFIG'],
    ['leaves nothing', { policies: null }, 'INVALID_CONFIG'],
    ['a part cannot work with', limitOf(666), 'CONFIG_REFUSED'],
  ])('is not staged if it %s', async (_, patch, expected) => {
    const a = await fleet.start('a', { code });
    a.objection = ({ document }) => (document.policies?.api?.rate === '666/s' ? 'no' : undefined);
    await expect(a.config.update(patch, inMs(1000))).rejects.toEqual(errorWith({ code: expected }));
    expect(a.revision).toBe(1);
  });

  it('is checked over those that come before it', async () => {
    const a = await fleet.start('a', { code });
    const promo = { profiles: { promo: limitOf(900) } };
    await expect(a.config.update({ profile: 'promo' }, inMs(2000))).rejects.toThrow(/profile/);
    await a.config.update(promo, inMs(1000));
    await a.config.update({ profile: 'promo' }, inMs(2000));
    await expect(a.config.update({ profile: 'promo' }, inMs(500))).rejects.toThrow(/profile/);
    await pass(2000 + SPREAD_MS);
    expect(a.rate).toBe('900/s');
  });

  describe('that does not fit any more', () => {
    it('is foretold when that happens, and refused aloud when its time comes', async () => {
      const document = { ...limitOf(100), profiles: { promo: limitOf(900) } };
      const a = await fleet.start('a', { code: { document } });
      const b = await fleet.start('b', { code: { document } });
      await a.config.update({ profile: 'promo' }, { ...inMs(60_000), by: 'ann' });
      await a.config.update(limitOf(300), inMs(61_000));
      await a.config.update({ profiles: null });
      await fleet.settle();
      const foretold =
        /^update 2 by ann for .*Z does not fit: .*profile.*; it is left out when its time comes/s;
      expect(b.warnings).toEqual([expect.stringMatching(foretold)]);
      await pass(60_000 + SPREAD_MS);
      for (const node of [a, b]) {
        expect(node.errors).toEqual([
          expect.stringMatching(
            /^revision 5: update 2 by ann .* does not fit any more, and is left out: .*profile/s,
          ),
        ]);
        expect(node.refusals).toMatchObject([{ revision: 2, kind: 'staged' }]);
      }
      const [dropped] = await a.config.history(1);
      expect(dropped).toMatchObject({ kind: 'drop', about: { id: 2 }, staged: [{ id: 3 }] });
      expect(dropped!.reason).toContain('profile');
      await pass(1000);
      expect([a.rate, b.rate]).toEqual(['300/s', '300/s']);
    });

    it('is taken by those who can, and refused by who cannot', async () => {
      const a = await fleet.start('a', { code });
      const b = await fleet.start('b', { code });
      b.objection = ({ document }) => (document.policies?.api?.rate === '200/s' ? 'no' : undefined);
      await a.config.update(limitOf(200), inMs(10_000));
      await fleet.settle();
      expect(b.refusals).toMatchObject([{ revision: 2, kind: 'staged' }]);
      await fleet.clock.advanceAsync(ACKNOWLEDGED_AFTER_MS);
      expect((await a.config.nodes()).find(({ node }) => node === 'b')).toMatchObject({
        ...{ revision: 2, status: 'refused', about: 2 },
        reason: expect.stringContaining('does not fit: no') as string,
      });
      await pass(10_000 + SPREAD_MS);
      expect([a.rate, b.rate]).toEqual(['200/s', '100/s']);
      expect(b.refusals.at(-1)).toMatchObject({ revision: 3, kind: 'invalid' });
    });

    it('is left out after a moment if no process can use it', async () => {
      const a = await fleet.start('a', { code });
      const b = await fleet.start('b', { code });
      await a.config.update(limitOf(200), inMs(10_000));
      a.objection = b.objection = ({ document }) =>
        document.policies?.api?.rate === '200/s' ? 'api is in use' : undefined;
      await pass(10_000 + SPREAD_MS);
      expect([a.rate, b.rate, a.revision]).toEqual(['100/s', '100/s', 2]);
      await pass(1000 + SPREAD_MS);
      await pass(SPREAD_MS);
      expect([a.rate, b.rate, a.revision]).toEqual(['100/s', '100/s', 3]);
      expect(a.errors.at(-1)).toContain('is left out: api is in use');
      expect(b.refusals.at(-1)).toMatchObject({ revision: 2, kind: 'staged' });
    });
  });

  describe('and rollbacks', () => {
    it('is cancelled by a rollback to before it, and waits again after one to when it waited', async () => {
      const a = await fleet.start('a', { code });
      await a.config.update(limitOf(200), inMs(HOUR));
      expect(await a.config.rollback(1)).not.toHaveProperty('staged');
      expect(await a.config.rollback(2)).toMatchObject({ revision: 4, staged: [{ id: 2 }] });
      await pass(HOUR + SPREAD_MS);
      expect([a.rate, a.revision]).toEqual(['200/s', 5]);
    });

    it('does not take effect a second time by a rollback to when it waited', async () => {
      const a = await fleet.start('a', { code });
      await a.config.update(limitOf(200), inMs(10_000));
      await pass(10_000 + SPREAD_MS);
      await a.config.rollback(2);
      await fleet.poll();
      expect([a.rate, a.revision]).toEqual(['100/s', 4]);
      expect(await a.config.staged()).toEqual([]);
    });
  });

  describe('and clocks', () => {
    it('keeps to the store’s where the own one is wrong', async () => {
      const skewed = Object.create(fleet.clock) as typeof fleet.clock;
      skewed.epochMs = (micros) => fleet.clock.epochMs(micros) + HOUR;
      const b = await fleet.start('b', { code, clock: skewed });
      await b.config.update(limitOf(200), inMs(10_000));
      await pass(9999);
      expect(b.rate).toBe('100/s');
      await pass(1 + SPREAD_MS);
      expect(b.rate).toBe('200/s');
    });

    it.each([
      ['back', -HOUR, HOUR],
      ['ahead', HOUR, 0],
    ])('takes effect by the store’s when that steps %s, and once', async (_, stepMs, laterMs) => {
      const ofStore = Object.create(fleet.clock) as ManualClock;
      let offsetMs = 0;
      ofStore.epochMs = (micros) => fleet.clock.epochMs(micros) + offsetMs;
      fleet.store = new MemoryConfig(ofStore);
      const a = await fleet.start('a', { code });
      const b = await fleet.start('b', { code });
      await a.config.update(limitOf(200), inMs(60_000));
      offsetMs = stepMs;
      await fleet.poll();
      expect(a.rate).toBe(laterMs === 0 ? '200/s' : '100/s');
      await pass(60_000 + laterMs + SPREAD_MS);
      expect([a.rate, b.rate]).toEqual(['200/s', '200/s']);
      // A clock that steps back over its time again does not bring it back.
      offsetMs -= 2 * HOUR;
      await a.config.update(limitOf(300));
      await pass(3 * HOUR);
      expect([a.rate, b.rate]).toEqual(['300/s', '300/s']);
      expect(await kinds(a)).toEqual(['code', 'stage', 'update', 'update']);
    });
  });

  describe('and stores that fail', () => {
    it('takes effect when the store is back, for who was away at its time', async () => {
      const a = await fleet.start('a', { code });
      const b = await fleet.start('b', { code });
      await a.config.update(limitOf(200), inMs(10_000));
      await fleet.settle();
      for (const node of [a, b]) node.wire.isDown = true;
      await pass(20_000);
      expect([a.rate, b.rate]).toEqual(['100/s', '100/s']);
      for (const node of [a, b]) node.wire.isDown = false;
      await fleet.poll();
      expect([a.rate, b.rate]).toEqual(['200/s', '200/s']);
      expect(await kinds(a)).toEqual(['code', 'stage', 'update']);
    });

    it('waits on when the store has lost all, and is not staged twice by a lost answer', async () => {
      const a = await fleet.start('a', { code });
      a.wire.writeFate = () => 'lose';
      const at = inMs(60_000);
      await a.config.update(limitOf(200), at);
      a.wire.writeFate = () => 'ok';
      fleet.flush();
      await fleet.poll();
      expect(a.config.current().staged).toMatchObject([{ id: 2, effectiveAtMs: at.effectiveAt }]);
      const b = await fleet.start('b', { code });
      await pass(60_000);
      expect([a.rate, b.rate]).toEqual(['200/s', '200/s']);
      expect(a.revision).toBe(b.revision);
    });
  });

  it('is left to the running processes by a tool, unless there seem to be none', async () => {
    const a = await fleet.start('a', { code });
    await a.config.update(limitOf(200), inMs(10_000));
    await a.config.close();
    await fleet.clock.advanceAsync(10_001);
    const tool = await fleet.start('tool', { isVisitor: true });
    expect([tool.rate, tool.revision]).toEqual(['100/s', 2]);
    await fleet.clock.advanceAsync(2000);
    // A change that is due comes first: the later command holds.
    await tool.config.update(limitOf(5));
    expect([tool.rate, tool.revision]).toEqual(['5/s', 4]);
  });

  it('tells of the apps that have other figures, at once or at their time (A-66, V-A42)', async () => {
    const apps = { shop: { guaranteed: 20_000, burst: 80_000 }, mail: { guaranteed: 5 } };
    const a = await fleet.start('a', { code: { document: { apps } } });
    const at = inMs(60_000);
    const figures = { guaranteed: 25_000, burst: 100_000 };
    await a.config.update({ apps: { shop: figures } }, at);
    await pass(59_999);
    expect(a.config.current().document.apps!['shop']).toEqual(apps.shop);
    expect(a.changes.map(({ updates }) => updates)).toEqual([[]]);
    await pass(1 + SPREAD_MS);
    const message = { type: 'config_update', app: 'shop', ...figures, revision: 3 };
    expect(a.changes[1]!.updates).toEqual([{ ...message, effectiveAtMs: at.effectiveAt }]);
    await a.config.update({ apps: { mail: { guaranteed: 6 }, new: { guaranteed: 1, burst: 2 } } });
    const { atMs: effectiveAtMs } = (await a.config.history(1))[0]!;
    const type = 'config_update';
    expect(a.changes[2]!.updates).toEqual([
      { type, app: 'mail', guaranteed: 6, burst: 6, effectiveAtMs, revision: 4 },
      { type, app: 'new', guaranteed: 1, burst: 2, effectiveAtMs, revision: 4 },
    ]);
  });

  it('holds from its time on whatever else is written, unless that says otherwise later', async () => {
    const step = fc.oneof(
      fc.record({ do: fc.constant('stage' as const), in: fc.integer({ min: 1, max: 60 }) }),
      fc.record({ do: fc.constant('now' as const), in: fc.constant(0) }),
      fc.record({ do: fc.constant('wait' as const), in: fc.integer({ min: 1, max: 20 }) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 25, size: 'max' }), async (steps) => {
        const one = new Fleet();
        const a = await one.start('a', { code });
        const b = await one.start('b', { code });
        // The rate that should hold, by a list of all commands and their instants.
        const said: { readonly atMs: number; readonly rate: string }[] = [
          { atMs: 0, rate: '100/s' },
        ];
        let rate = 1000;
        for (const { do: what, in: seconds } of steps) {
          const now = one.clock.epochMs(one.clock.now());
          const ahead = said.filter(({ atMs }) => atMs > now).length;
          if (what === 'wait') await one.clock.advanceAsync(seconds * 1000);
          else if (what === 'now' || ahead < 16) {
            const effectiveAt = what === 'now' ? undefined : now + seconds * 1000 + 500;
            said.push({ atMs: effectiveAt ?? now, rate: `${++rate}/s` });
            await [a, b][rate % 2]!.config.update(limitOf(rate), { effectiveAt });
          }
          await one.settle();
        }
        await one.clock.advanceAsync(200);
        await one.settle();
        const now = one.clock.epochMs(one.clock.now());
        const due = said.filter(({ atMs }) => atMs <= now);
        const last = due.reduce((best, entry) => (entry.atMs >= best.atMs ? entry : best));
        expect([a.rate, b.rate]).toEqual([last.rate, last.rate]);
        await one.close();
      }),
      { numRuns: 30 },
    );
  });
});
