import { ConfigConflictError } from '../../lib/config/config-errors.js';
import { type ConfigLayer } from '../../lib/config/schema/check.js';
import { ACKNOWLEDGED_AFTER_MS } from '../../lib/config/acknowledger.js';
import { errorWith } from '../support/errors.js';
import { until } from '../support/until.js';
import { Fleet, limitOf, ONE_POLL_MS } from './fleet.js';

describe('a configuration that changes while it is in use', () => {
  let fleet: Fleet;

  beforeEach(() => {
    fleet = new Fleet();
  });

  afterEach(() => fleet.close());

  const code = { document: limitOf(100) };

  it('starts with what the code says, which becomes the first revision', async () => {
    const a = await fleet.start('a', { code });
    expect(a.config.current()).toMatchObject({ revision: 1, profile: 'normal' });
    expect(a.rate).toBe('100/s');
    expect(Object.isFrozen(a.config.current().document.policies)).toBe(true);
    expect(a.used.map(({ revision }) => revision)).toEqual([1]);
    expect(a.changes).toEqual([]);
  });

  it('reaches everyone, with what has changed and who changed it', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    const updated = await a.config.update(limitOf(200), { by: 'ann' });
    expect(updated.revision).toBe(2);
    expect([a.revision, a.rate]).toEqual([2, '200/s']);
    await fleet.settle();
    expect([b.revision, b.rate]).toEqual([2, '200/s']);
    expect(b.changes).toMatchObject([
      {
        from: { revision: 1 },
        to: { revision: 2 },
        diff: {
          changed: [{ path: 'policies.api.rate', before: '100/s', after: '200/s' }],
          added: [],
          removed: [],
        },
        record: { by: 'ann', kind: 'update' },
      },
    ]);
    expect(a.config.current().hash).toBe(b.config.current().hash);
    expect(JSON.parse(JSON.stringify(b.changes[0]))).toMatchObject({
      diff: { changed: [{ path: 'policies.api.rate' }] },
      record: { by: 'ann' },
    });
  });

  it('tells of a change in full, also to who writes it down or copies it', async () => {
    const a = await fleet.start('a', { code });
    await a.config.update(limitOf(200));
    const [change] = a.changes;
    const { from, to, diff, updates, record } = change!;
    expect(diff.changed).toHaveLength(1);
    expect({ ...change }).toEqual({ from, to, diff, updates, record });
    const written = JSON.parse(JSON.stringify(change)) as object;
    expect(Object.keys(written).sort()).toEqual(['diff', 'from', 'record', 'to', 'updates']);
  });

  it('deletes what a patch says is null, and keeps that over the next code', async () => {
    const document = { policies: { api: { rate: '1/s' }, login: { rate: '5/min' } } };
    const a = await fleet.start('a', { code: { document, version: 1 } });
    await a.config.update({ policies: { login: null } });
    expect(Object.keys(a.config.current().document.policies!)).toEqual(['api']);
    const newer = { policies: { ...document.policies, api: { rate: '2/s' } } };
    await fleet.start('b', { code: { document: newer, version: 2 } });
    await fleet.settle();
    expect(a.config.current().document.policies).toEqual({ api: { rate: '2/s' } });
  });

  it('can replace a policy by another of its name in two updates', async () => {
    const document = { policies: { api: { rate: '10/s', burst: 20 } } };
    const a = await fleet.start('a', { code: { document } });
    await a.config.update({ policies: { api: null, other: { rate: '1/s' } } });
    await a.config.update({ policies: { api: { rate: '7/s' } } });
    expect(a.config.current().document.policies!.api).toEqual({ rate: '7/s' });
  });

  it('switches a profile for everyone in one step', async () => {
    const document = { ...limitOf(100), profiles: { promo: limitOf(900) } };
    const a = await fleet.start('a', { code: { document } });
    const b = await fleet.start('b', { code: { document } });
    await a.config.update({ profile: 'promo' });
    await fleet.settle();
    expect(b.config.current()).toMatchObject({ profile: 'promo', revision: 2 });
    expect(b.rate).toBe('900/s');
    await b.config.update({ profile: null });
    await fleet.settle();
    expect([a.config.current().profile, a.rate]).toEqual(['normal', '100/s']);
  });

  describe('refuses', () => {
    it.each([
      ['a document that is not valid', { policies: { api: { rate: '0/s' } } }],
      ['an unknown field', { polices: {} }],
      ['an unknown profile', { profile: 'sale' }],
      ['what is no object', 'policies'],
      ['an empty document', { policies: null }],
    ])('%s, and writes nothing', async (_, patch) => {
      const a = await fleet.start('a', { code });
      await expect(a.config.update(patch as ConfigLayer)).rejects.toEqual(
        errorWith({ name: 'InvalidConfigError' }),
      );
      expect(a.revision).toBe(1);
      expect((await fleet.store.read()).revision).toBe(1);
      expect(a.config.validate(patch).length).toBeGreaterThan(0);
    });

    it('an empty document only if it is not meant', async () => {
      const a = await fleet.start('a', { code });
      const b = await fleet.start('b', { code });
      await a.config.update({ policies: null }, { allowEmpty: true });
      await fleet.settle();
      expect(b.config.current()).toMatchObject({ revision: 2, document: {} });
    });

    it.each([
      ['nothing at all', undefined, {}, 'patch: expected an object'],
      ['null', null, {}, 'patch: expected an object, got null'],
      ['no options', {}, null, 'options: expected an object, got null'],
      ['a misspelt option', {}, { expectedRevison: 1 }, 'options.expectedRevison: no such option'],
    ])('%s', async (_what, patch, options, message) => {
      const a = await fleet.start('a', { code });
      await expect(a.config.update(patch as never, options as never)).rejects.toThrow(message);
      expect(a.revision).toBe(1);
      const [issue] = patch ? [{ message }] : a.config.validate(patch);
      expect(issue?.message).toBe(message);
    });

    it.each([
      ['3', {}, 'revision: expected a whole number above 0, got "3"'],
      [9, {}, 'revision 9 is not in the history, which has 1 to 1'],
      [1, { effectiveAt: 5 }, 'options.effectiveAt: no such option'],
    ])('a rollback to %j with %j', async (revision, options, message) => {
      const a = await fleet.start('a', { code });
      await expect(a.config.rollback(revision as never, options as never)).rejects.toThrow(message);
      expect(a.revision).toBe(1);
    });

    it('an update of another revision than the expected one', async () => {
      const a = await fleet.start('a', { code });
      await a.config.update(limitOf(200), { expectedRevision: 1 });
      const late = a.config.update(limitOf(300), { expectedRevision: 1 });
      await expect(late).rejects.toEqual(new ConfigConflictError(1, 2));
      expect(a.rate).toBe('200/s');
    });

    it.each([
      ['expectedRevision', { expectedRevision: 0.5 }],
      ['by', { by: '' }],
      ['effectiveAt', { effectiveAt: NaN }],
      ['effectiveAt', { effectiveAt: new Date(NaN) }],
    ])('a wrong %s', async (field, options) => {
      const a = await fleet.start('a', { code });
      await expect(a.config.update(limitOf(1), options)).rejects.toEqual(
        errorWith({ code: 'INVALID_ARGUMENT', field }),
      );
    });

    it('what a part of the updating process cannot work with', async () => {
      const a = await fleet.start('a', { code });
      a.objection = () => 'policy "api" is in use';
      await expect(a.config.update(limitOf(2))).rejects.toEqual(
        errorWith({ code: 'CONFIG_REFUSED' }),
      );
      expect(a.config.validate(limitOf(2))).toMatchObject([{ message: 'policy "api" is in use' }]);
      expect((await fleet.store.read()).revision).toBe(1);
      expect(a.used).toHaveLength(1);
    });
  });

  it('says of a document what is wrong, without changing anything', async () => {
    const a = await fleet.start('a', { code });
    expect(a.config.validate(limitOf(5))).toEqual([]);
    expect(a.config.validate({ policies: { api: { burst: 0 } } })).toMatchObject([
      { path: 'policies.api.burst', value: 0 },
    ]);
    // As a whole document it lacks the rate, which as a patch it need not name.
    expect(a.config.validate({ policies: { api: { burst: 9 } } })).toEqual([]);
    expect(a.config.validate({ policies: { api: { burst: 9 } } }, { as: 'document' })).not.toEqual(
      [],
    );
    expect(a.revision).toBe(1);
  });

  it('keeps the last good one where a revision cannot be used, and says so once', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    b.objection = ({ revision }) => (revision === 2 ? 'policy "api" is in use' : undefined);
    await a.config.update(limitOf(200));
    await fleet.poll();
    await fleet.poll();
    expect([b.revision, b.rate]).toEqual([1, '100/s']);
    expect(b.refusals).toMatchObject([
      { revision: 2, kind: 'invalid', reason: 'policy "api" is in use' },
    ]);
    expect(b.errors).toEqual([expect.stringContaining('revision 2 is invalid')]);
    expect(await a.config.isEveryoneOn(2)).toBe(false);
    const acks = await a.config.nodes();
    expect(acks.find(({ node }) => node === 'b')).toMatchObject({
      ...{ revision: 1, status: 'refused', about: 2, reason: 'policy "api" is in use' },
    });
    await a.config.update(limitOf(300));
    await fleet.settle();
    expect([b.revision, b.rate]).toEqual([3, '300/s']);
    // It says so a little later.
    expect(await a.config.isEveryoneOn(3)).toBe(false);
    await fleet.clock.advanceAsync(ACKNOWLEDGED_AFTER_MS);
    expect(await a.config.isEveryoneOn(3)).toBe(true);
  });

  it.each([
    ['the one before', [3], 2, '200/s'],
    ['its own, if that is no better', [2, 3], 0, '100/s'],
  ])('starts with %s where the last cannot be used, and says so once', async (...row) => {
    const [, unfit, revision, rate] = row;
    const a = await fleet.start('a', { code });
    await a.config.update(limitOf(200));
    await a.config.update(limitOf(300));
    const b = fleet.node('b', { code });
    b.objection = (next) => (unfit.includes(next.revision) ? 'too much' : undefined);
    await b.config.start();
    await fleet.poll();
    await fleet.poll();
    expect([b.revision, b.rate]).toEqual([revision, rate]);
    expect(b.errors).toEqual(['revision 3 is invalid and is left out: too much']);
    expect(b.refusals).toMatchObject([{ revision: 3, reason: 'too much' }]);
    expect((await a.config.nodes()).find(({ node }) => node === 'b')).toMatchObject({
      ...{ revision, status: 'refused', about: 3, reason: 'too much' },
    });
    await a.config.update(limitOf(400));
    await fleet.settle();
    expect([b.revision, b.rate]).toEqual([4, '400/s']);
  });

  it('changes no part if one of them refuses', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    const committed: number[] = [];
    b.config.consume({
      prepare:
        ({ revision }) =>
        () =>
          committed.push(revision),
    });
    b.config.consume({
      prepare: ({ revision }) => {
        if (revision === 2) throw new Error('no');
        return () => committed.push(-revision);
      },
    });
    await a.config.update(limitOf(200));
    await fleet.settle();
    expect(committed).toEqual([1, -1]);
    expect(b.used.map(({ revision }) => revision)).toEqual([1]);
  });

  it('goes back to an old revision, as a new one', async () => {
    const a = await fleet.start('a', { code });
    await a.config.update(limitOf(200), { by: 'ann' });
    await a.config.update({ policies: { other: { rate: '1/s' } } }, { by: 'ben' });
    const back = await a.config.rollback(2, { by: 'cid' });
    expect([back.revision, a.revision, a.rate]).toEqual([4, 4, '200/s']);
    const history = await a.config.history(3);
    expect(history.map(({ revision, by, kind }) => [revision, by, kind])).toEqual([
      [4, 'cid', 'rollback'],
      [3, 'ben', 'update'],
      [2, 'ann', 'update'],
    ]);
    expect(history[0]!.diff!.removed).toMatchObject([{ path: 'policies.other' }]);
    expect(history[1]!.diff!.added).toMatchObject([{ path: 'policies.other' }]);
    expect(history[2]!.diff!.changed).toMatchObject([{ path: 'policies.api.rate' }]);
    expect((await a.config.history()).at(-1)!.diff!.added).toMatchObject([{ path: 'policies' }]);
    await expect(a.config.rollback(77)).rejects.toEqual(errorWith({ code: 'UNKNOWN_REVISION' }));
    await expect(a.config.rollback(1, { expectedRevision: 2 })).rejects.toEqual(
      new ConfigConflictError(2, 4),
    );
  });

  it('goes back behind a deploy, and stays there when a process of it starts again', async () => {
    const a = await fleet.start('a', { code: { document: limitOf(100), version: 1 } });
    const newer = { document: { ...limitOf(999), protection: {} }, version: 2 };
    await fleet.start('b', { code: newer });
    await a.config.rollback(1);
    await fleet.settle();
    expect(a.rate).toBe('100/s');
    const again = await fleet.start('b2', { code: newer });
    await fleet.settle();
    expect([again.rate, a.rate]).toEqual(['100/s', '100/s']);
  });

  describe('drops what updates have set', () => {
    it('at one path, so that the code holds there again, and the next code as well', async () => {
      const document = { policies: { api: { rate: '100/s' }, login: { rate: '5/min' } } };
      const a = await fleet.start('a', { code: { document, version: 1 } });
      await a.config.update({ policies: { api: { rate: '7/s', burst: 9 }, login: null } });
      const { revision } = await a.config.unset(['policies', 'api', 'rate'], { by: 'ann' });
      expect(revision).toBe(3);
      expect(a.config.current().document.policies).toEqual({ api: { rate: '100/s', burst: 9 } });
      const [last] = await a.config.history(1);
      expect(last).toMatchObject({
        ...{ by: 'ann', kind: 'update' },
        diff: { changed: [{ path: 'policies.api.rate', before: '7/s', after: '100/s' }] },
      });
      await a.config.unset(['policies', 'login']);
      expect(a.config.current().document.policies).toHaveProperty('login');
      const newer = { policies: { api: { rate: '50/s', burst: 4 } } };
      await fleet.start('b', { code: { document: newer, version: 2 } });
      await fleet.settle();
      expect(a.config.current().document.policies).toEqual({ api: { rate: '50/s', burst: 9 } });
    });

    it('and leaves nothing behind of what was there for its sake', async () => {
      const a = await fleet.start('a', { code });
      await a.config.update({ policies: { other: { rate: '1/s' } } });
      await a.config.unset(['policies', 'other', 'rate']);
      expect(a.config.current().document).toEqual(limitOf(100));
      expect((await a.config.history(1))[0]!.patch).toEqual({});
    });

    it('and also what a rollback behind a deploy had to set', async () => {
      const a = await fleet.start('a', { code: { document: limitOf(100), version: 1 } });
      await fleet.start('b', { code: { document: limitOf(999), version: 2 } });
      await a.config.rollback(1);
      expect(a.rate).toBe('100/s');
      await a.config.unset(['policies']);
      expect(a.rate).toBe('999/s');
    });

    it.each([
      ['that the code has', ['policies', 'api', 'rate']],
      ['below what was removed', ['policies', 'old', 'rate']],
      ['that nobody has', ['__proto__']],
      ['of no names', []],
    ])('but no path %s', async (_what, path) => {
      const document = { policies: { api: { rate: '1/s' }, old: { rate: '1/s' } } };
      const a = await fleet.start('a', { code: { document } });
      await a.config.update({ policies: { old: null } });
      await expect(a.config.unset(path)).rejects.toEqual(
        errorWith({ code: 'INVALID_ARGUMENT', field: 'path' }),
      );
      expect(a.revision).toBe(2);
    });

    it('unless what is left could not be used, or another revision is expected', async () => {
      const a = await fleet.start('a', { code });
      await a.config.update({ policies: { other: { rate: '1/s', burst: 9, cost: 5 } } });
      await expect(a.config.unset(['policies', 'other', 'rate'])).rejects.toThrow('rate');
      const late = a.config.unset(['policies', 'other'], { expectedRevision: 1 });
      await expect(late).rejects.toEqual(new ConfigConflictError(1, 2));
      expect(a.revision).toBe(2);
    });
  });

  it('joins the updates of writers who do not know of each other', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    const names = Array.from({ length: 8 }, (_, i) => `p${i}`);
    await Promise.all(
      names.map((name, i) =>
        [a, b][i % 2]!.config.update({ policies: { [name]: { rate: '1/s' } } }),
      ),
    );
    await fleet.settle();
    expect(Object.keys(a.config.current().document.policies!).sort()).toEqual(['api', ...names]);
    expect(b.config.current()).toEqual(a.config.current());
    expect(a.revision).toBe(9);
  });

  it('reads once at a time, however many hints there are', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    b.wire.hintFate = () => 3;
    const before = b.wire.reads;
    for (let i = 0; i < 5; i++) await a.config.update(limitOf(i + 1));
    for (let i = 0; i < 100; i++) b.config.noticed(6);
    b.wire.tellLate();
    await fleet.settle();
    expect(b.revision).toBe(6);
    expect(b.wire.mostReadsUnderway).toBe(1);
    expect(b.wire.reads - before).toBeLessThan(15);
  });

  it('reads when somebody else has noticed a higher revision, without a hint', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    b.wire.hintFate = () => 0;
    await a.config.update(limitOf(2));
    await fleet.settle();
    b.config.noticed(1);
    await fleet.settle();
    expect(b.revision).toBe(1);
    b.config.noticed(2);
    await fleet.settle();
    expect(b.revision).toBe(2);
  });

  it('takes an answer that was given before a higher revision was noticed for what it is', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    a.wire.hintFate = () => 0;
    let arrive = (): void => {};
    a.wire.answersAfter = new Promise<void>((resolve) => (arrive = resolve));
    fleet.clock.advance(ONE_POLL_MS);
    await until(() => a.wire.answersUnderway === 1);
    await b.config.update(limitOf(200));
    // Somebody else has heard of it while the answer was on its way.
    a.config.noticed(b.revision);
    arrive();
    await fleet.settle();
    expect([a.rate, a.revision]).toEqual(['200/s', b.revision]);
    expect(a.refusals).toEqual([]);
  });

  it('is above a revision that others know of, though the store has lost it', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    a.config.noticed(40);
    a.config.noticed(NaN);
    await fleet.settle();
    expect([a.revision, b.revision]).toEqual([41, 41]);
    expect(a.refusals).toMatchObject([{ kind: 'lost' }]);
    a.config.noticed(40);
    await fleet.poll();
    expect(a.revision).toBe(41);
  });

  it('does not count a tool that only changes it', async () => {
    const a = await fleet.start('a', { code });
    const tool = await fleet.start('tool', { isVisitor: true });
    const { revision } = await tool.config.update(limitOf(2));
    await fleet.poll();
    expect((await a.config.nodes()).map(({ node }) => node)).toEqual(['a']);
    expect(a.revision).toBe(revision);
  });

  it('does not start where a part cannot work with it, and leaves nothing behind', async () => {
    const node = fleet.node('a', { code });
    node.objection = () => 'cannot do that';
    await expect(node.config.start()).rejects.toThrow('cannot do that');
    expect(fleet.clock.pending).toBe(0);
    expect((await fleet.store.read()).revision).toBe(0);
  });

  it('forgets a process that is gone, at once if it said so', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    const c = await fleet.start('c', { code });
    await b.config.close();
    c.wire.isDown = true;
    c.wire.hintFate = () => 0;
    await a.config.update(limitOf(2));
    await fleet.settle();
    expect((await a.config.nodes()).map(({ node }) => node).sort()).toEqual(['a', 'c']);
    expect(await a.config.isEveryoneOn(2)).toBe(false);
    for (let i = 0; i < 5; i++) await fleet.clock.advanceAsync(ONE_POLL_MS);
    expect((await a.config.nodes()).map(({ node }) => node)).toEqual(['a']);
    expect(await a.config.isEveryoneOn(2)).toBe(true);
    await expect(b.config.update(limitOf(3))).rejects.toEqual(
      errorWith({ code: 'STORE_UNAVAILABLE' }),
    );
  });
});
