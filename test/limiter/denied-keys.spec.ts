import fc from 'fast-check';
import { DeniedKeys } from '../../lib/limiter/denied-keys.js';
import { createRateLimiter } from 'nestjs-weir';
import { Bench } from '../support/limiters.js';
import { VirtualStand } from '../support/virtual-stand.js';

/** Notes a denial as the limiter does. */
function deny(keys: DeniedKeys, key: string): boolean {
  if (--keys.untilNextNote > 0) return false;
  keys.note('p', key);
  return true;
}

describe('DeniedKeys', () => {
  it('finds the keys that a flood of others surrounds, and about how often they came', () => {
    const keys = new DeniedKeys();
    keys.watch();
    let random = 1;
    const next = (): number => (random = (random * 48_271) % 2_147_483_647);
    for (let second = 0; second < 10; second++) {
      for (let denial = 0; denial < 20_000; denial++) {
        const isHeavy = next() % 4 === 0;
        deny(keys, isHeavy ? `heavy-${next() % 10}` : `other-${next() % 100_000}`);
      }
      keys.tick();
    }
    const top = keys.top(10);
    const found = top.filter(({ key }) => key.startsWith('heavy-'));
    expect(found.length).toBeGreaterThanOrEqual(9);
    // 10 s × 20,000 × ¼ ÷ 10 of each, less those that met another key in their cell.
    for (const { denied } of found) expect(denied).toBeGreaterThan(1500);
    for (const { denied } of found) expect(denied).toBeLessThan(10_000);
  });

  it('notes a few thousand a second at most, however many are denied', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 100_000 }), (denials) => {
        const keys = new DeniedKeys();
        keys.watch();
        let notes = 0;
        for (let denial = 0; denial < denials; denial++) if (deny(keys, 'k')) notes++;
        const doublings = Math.ceil(Math.log2(denials / 2000 + 2)) + 1;
        expect(notes).toBeLessThanOrEqual(2000 * doublings);
      }),
      { numRuns: 8 },
    );
  });

  it('notes every denial again soon after a flood is over', () => {
    const keys = new DeniedKeys();
    keys.watch();
    for (let denial = 0; denial < 100_000; denial++) deny(keys, 'flood');
    for (let second = 0; second < 25; second++) keys.tick();
    expect(deny(keys, 'single')).toBe(true);
  });

  it('counts the denials of the last minute, whenever it is asked', () => {
    const keys = new DeniedKeys();
    keys.watch();
    for (let second = 0; second < 600; second++) {
      deny(keys, 'k');
      keys.tick();
      if (second < 60) expect(keys.top(1)[0]!.denied).toBe(second + 1);
      else expect(keys.top(1)[0]!.denied).toBe(60);
    }
  });

  it('forgets in two minutes who is denied no longer', () => {
    const keys = new DeniedKeys();
    keys.watch();
    for (let denial = 0; denial < 100; denial++) deny(keys, 'k');
    expect(keys.top(1)).toEqual([{ policy: 'p', key: 'k', denied: 100, source: 'local' }]);
    for (let second = 0; second < 90; second++) keys.tick();
    expect(keys.top(1)[0]!.denied).toBe(50);
    for (let second = 0; second < 30; second++) keys.tick();
    expect(keys.top(1)).toEqual([]);
  });

  it('notes nothing while nobody watches', () => {
    const bench = new Bench({ rate: 1, period: '1h' });
    bench.takeMany(10);
    expect(bench.limiter.deniedKeys!.top(1)).toEqual([]);
    bench.limiter.deniedKeys!.watch();
    bench.takeMany(10);
    expect(bench.limiter.deniedKeys!.top(2)).toEqual([
      { policy: 'p', key: 'k', denied: 10, source: 'local' },
    ]);
  });

  it('knows where a key was denied last: by the store, here, or by the share while the store is away', async () => {
    const stand = new VirtualStand();
    const { store, machine } = stand;
    const p = { rate: 2, period: '1h', sync: 'exact' } as const;
    const limiter = createRateLimiter({
      policies: { p },
      clock: machine.clock,
      nodeId: 'n',
      store,
    });
    const keys = limiter.deniedKeys!;
    keys.watch();
    await stand.pass(100);
    const ask = async (times: number): Promise<unknown> => {
      for (let n = 0; n < times; n++) {
        await stand.run(() => limiter.tryAcquire({ policy: 'p', key: 'k' }));
      }
      return keys.top(1);
    };
    expect(await ask(3)).toEqual([{ policy: 'p', key: 'k', denied: 1, source: 'store' }]);
    // The denial of the store is remembered.
    expect(await ask(1)).toEqual([{ policy: 'p', key: 'k', denied: 2, source: 'local' }]);
    stand.goDown();
    await stand.pass(2000);
    expect(await ask(3)).toEqual([{ policy: 'p', key: 'k', denied: 3, source: 'fallback' }]);
    await stand.comeBack();
    // The store is left alone for a while, the longer it was away.
    await stand.pass(10_000);
    expect(await ask(1)).toEqual([{ policy: 'p', key: 'k', denied: 4, source: 'store' }]);
  });
});
