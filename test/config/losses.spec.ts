import { errorWith } from '../support/errors.js';
import { Fleet, limitOf } from './fleet.js';

describe('a configuration whose store fails', () => {
  let fleet: Fleet;
  const code = { document: limitOf(100) };

  beforeEach(() => {
    fleet = new Fleet();
  });

  afterEach(() => fleet.close());

  it('starts with its own layers, and catches up within one poll', async () => {
    const a = await fleet.start('a', { code });
    await a.config.update(limitOf(200));
    const b = fleet.node('b', { code });
    b.wire.isDown = true;
    b.wire.hintFate = () => 0;
    await b.config.start();
    expect([b.revision, b.rate]).toEqual([0, '100/s']);
    await fleet.poll();
    expect(b.warnings).toEqual([
      expect.stringContaining('cannot be read from Redis, what this process brings along stays'),
    ]);
    b.wire.isDown = false;
    await fleet.poll();
    expect([b.revision, b.rate]).toEqual([2, '200/s']);
    expect(b.infos).toContainEqual(expect.stringContaining('can be read again'));
    expect(b.warnings).toHaveLength(1);
    expect(b.changes).toMatchObject([{ from: { revision: 0 }, to: { revision: 2 } }]);
  });

  it('refuses an update, and nothing of it is applied', async () => {
    const a = await fleet.start('a', { code });
    a.wire.isDown = true;
    const refused = errorWith({ code: 'STORE_UNAVAILABLE' });
    await expect(a.config.update(limitOf(200))).rejects.toEqual(refused);
    await expect(a.config.rollback(1)).rejects.toEqual(refused);
    a.wire.isDown = false;
    await fleet.poll();
    expect([a.revision, a.rate, a.used.length]).toEqual([1, '100/s', 1]);
  });

  it('writes an update once whose answer was lost', async () => {
    const a = await fleet.start('a', { code });
    a.wire.writeFate = () => 'lose';
    const { revision } = await a.config.update(limitOf(200));
    expect(revision).toBe(2);
    expect(await fleet.store.history(10)).toHaveLength(2);
    expect([a.revision, a.rate]).toEqual([2, '200/s']);
  });

  it('writes an update that did not arrive the first time', async () => {
    const a = await fleet.start('a', { code });
    const fates = ['fail', 'lose'] as const;
    let attempt = 0;
    a.wire.writeFate = () => fates[attempt++] ?? 'ok';
    await expect(a.config.update(limitOf(200))).rejects.toEqual(
      errorWith({ code: 'STORE_UNAVAILABLE' }),
    );
    // Its second answer was lost too: what was written is found by the next look.
    await fleet.poll();
    expect([a.revision, a.rate]).toEqual([2, '200/s']);
    attempt = 0;
    a.wire.writeFate = () => (attempt++ === 0 ? 'fail' : 'ok');
    expect(await a.config.update(limitOf(300))).toMatchObject({ revision: 3 });
  });

  it('is written again after the store has lost all', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    await a.config.update(limitOf(200));
    await fleet.settle();
    fleet.flush();
    await fleet.poll();
    await fleet.poll();
    expect([a.revision, b.revision]).toEqual([3, 3]);
    expect([a.rate, b.rate]).toEqual(['200/s', '200/s']);
    const { current } = await fleet.store.read();
    expect(current).toMatchObject({ revision: 3, kind: 'restore', ...{ patch: limitOf(200) } });
    const told = [...a.refusals, ...b.refusals];
    expect(told[0]).toMatchObject({ revision: 2, kind: 'lost' });
    expect([...a.errors, ...b.errors]).toContain(
      'revision 2 is lost, as the store came back empty: revision 2 stays in use and is written to it again',
    );
    expect(a.refusals.length).toBeLessThanOrEqual(1);
    expect(b.refusals.length).toBeLessThanOrEqual(1);
    // And on.
    await b.config.update(limitOf(300));
    await fleet.poll();
    expect([a.revision, a.rate]).toEqual([4, '300/s']);
  });

  it('is what the one with the highest revision has', async () => {
    const a = await fleet.start('a', { code });
    const b = await fleet.start('b', { code });
    a.wire.isDown = true;
    await b.config.update(limitOf(200));
    await b.config.update(limitOf(300));
    fleet.flush();
    a.wire.isDown = false;
    b.wire.isDown = true;
    await fleet.poll();
    expect((await fleet.store.read()).revision).toBe(2);
    b.wire.isDown = false;
    await fleet.poll();
    await fleet.poll();
    expect([a.revision, b.revision]).toEqual([4, 4]);
    expect([a.rate, b.rate]).toEqual(['300/s', '300/s']);
  });

  it('holds the code of a process that started after the loss, and the updates before it', async () => {
    const a = await fleet.start('a', { code: { document: limitOf(100), version: 1 } });
    await a.config.update({ policies: { other: { rate: '1/s' } } });
    a.wire.isDown = true;
    fleet.flush();
    const b = await fleet.start('b', { code: { document: limitOf(500), version: 2 } });
    expect(b.revision).toBe(1);
    a.wire.isDown = false;
    for (let i = 0; i < 3; i++) await fleet.poll();
    const document = { policies: { api: { rate: '500/s' }, other: { rate: '1/s' } } };
    expect(a.config.current().document).toEqual(document);
    expect(b.config.current()).toEqual(a.config.current());
  });
});
