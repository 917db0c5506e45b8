import fc from 'fast-check';
import { ManualLoop, SETTINGS, type Work } from './manual-loop.js';

describe('the line', () => {
  let loop: ManualLoop;
  beforeEach(() => void (loop = new ManualLoop()));

  it('runs work at once while a slice of the turn is left', () => {
    const line = loop.line();
    const [first, second, third] = [1, 2, 3].map((n) => loop.work(`${n}`, 3, 3));
    for (const one of [first!, second!, third!]) line.enter(one);
    expect(loop.order).toEqual(['1', '2']);
    expect([line.size, loop.isAwake]).toEqual([1, true]);
    loop.turn();
    expect(loop.order).toEqual(['1', '2', '3']);
    expect(line.stats.byTier[3]).toEqual({ ran: 2, waited: 1, full: 0, late: 0, gone: 0 });
  });

  it('says so without a piece of work, and learns what a run takes', () => {
    const line = loop.line();
    expect(line.tryBegin(0)).toBe(true);
    loop.spend(4);
    line.ran();
    expect(line.meanRunMicros).toBe(4000);
    loop.spend(2);
    expect(line.tryBegin(0)).toBe(false);
  });

  it('runs the highest tier first, and each in the order of coming', () => {
    const line = loop.line();
    loop.spend(5);
    for (const [name, tier] of [...'c1 a1 s1 c2 s2'.split(' ').entries()].map(
      ([, name]) => [name, 'sabc'.indexOf(name[0]!)] as const,
    )) {
      line.enter(loop.work(name, tier));
    }
    loop.settle();
    expect(loop.order).toEqual(['s1', 's2', 'a1', 'c1', 'c2']);
  });

  it('gives a run in 64 to a lower tier, lower tiers in turn', () => {
    const line = loop.line({ targetMicros: 9e6, intervalMicros: 1e7, sliceMicros: 50_000 });
    loop.spend(50);
    for (let i = 0; i < 300; i++) line.enter(loop.work('s', 0, 0.1));
    for (const [name, tier] of [
      ['b', 2],
      ['c', 3],
    ] as const) {
      for (let i = 0; i < 5; i++) line.enter(loop.work(name, tier, 0.1));
    }
    loop.settle();
    const lower = loop.order.flatMap((name, i) => (name === 's' || i > 300 ? [] : [[name, i + 1]]));
    expect(lower).toEqual([
      ['b', 64],
      ['c', 128],
      ['b', 192],
      ['c', 256],
    ]);
  });

  /** A mean of 4 ms, then so many that wait. */
  const filled = (ms: number, count: number) => {
    const line = loop.line();
    line.enter(loop.work('first', 0, ms));
    loop.spend(5);
    for (let i = 0; i < count; i++) line.enter(loop.work(`${i}`, 1, ms));
    return line;
  };

  it('refuses at once whoever would have to wait longer than interval', () => {
    const line = filled(4, 51);
    const [s, a, c] = [0, 1, 3].map((tier) => loop.work('x', tier));
    for (const one of [a!, c!, s!]) line.enter(one);
    expect([s!.endings, a!.endings, c!.endings]).toEqual([[], ['full'], ['full']]);
    expect(line.stats.byTier[3]!.full).toBe(1);
  });

  it('and longer than target, once the loop has had no rest for interval', () => {
    const line = filled(4, 12);
    loop.now = loop.restedAt + 201_000;
    const one = loop.work('x', 1);
    line.enter(one);
    expect(one.endings).toEqual([]);
    const next = loop.work('x', 1);
    line.enter(next);
    expect(next.endings).toEqual(['full']);
    loop.restedAt = loop.now - 100_000;
    const rested = loop.work('x', 1);
    line.enter(rested);
    expect(rested.endings).toEqual([]);
  });

  it('never refuses the first few by prediction', () => {
    const line = filled(3000, 4);
    expect(line.size).toBe(4);
  });

  it('does not take a process that stood still for one whose runs take long', () => {
    const line = filled(4, 0);
    loop.turn();
    line.enter(loop.work('stopped', 0, 2000));
    // 4 ms, and a twentieth of interval.
    expect(line.meanRunMicros).toBeLessThan(15_000);
    loop.spend(5);
    loop.restedAt = loop.now;
    for (let i = 0; i < 14; i++) line.enter(loop.work(`${i}`, 1, 4));
    expect(line.stats.byTier[1]!.full).toBe(0);
  });

  it('refuses what has waited too long: the highest tier after interval, others after target', () => {
    const line = loop.line();
    loop.spend(5);
    const [s, c] = [loop.work('s', 0), loop.work('c', 3)];
    line.enter(s);
    line.enter(c);
    loop.spend(196);
    const late = loop.work('late', 3);
    line.enter(late);
    loop.spend(51);
    loop.restedAt = loop.now - 201_000;
    loop.settle();
    expect([s.endings, c.endings, late.endings]).toEqual([['late'], ['late'], ['late']]);
    const again = [loop.work('s', 0), loop.work('c', 3)];
    loop.spend(5);
    for (const one of again) line.enter(one);
    loop.spend(60);
    loop.restedAt = loop.now - 201_000;
    loop.settle();
    expect(again.map(({ endings }) => endings)).toEqual([['ran'], ['late']]);
  });

  it('with a single tier, after target', () => {
    const line = loop.line({ tierCount: 1 });
    loop.spend(5);
    const one = loop.work('x', 0);
    line.enter(one);
    loop.spend(60);
    loop.restedAt = loop.now - 201_000;
    loop.settle();
    expect(one.endings).toEqual(['late']);
  });

  it('drops who has left', () => {
    const line = filled(4, 3);
    const one = loop.work('gone', 0);
    line.enter(one);
    one.hasLeft = true;
    loop.settle();
    expect(one.endings).toEqual([]);
    expect(line.stats.byTier[0]!.gone).toBe(1);
  });

  it('goes on after work that throws', () => {
    const line = filled(4, 1);
    const broken = loop.work('broken', 0);
    broken.run = () => {
      throw new Error('broken');
    };
    line.enter(broken);
    // One immediate after the other, as Node does after an error that somebody handles.
    expect(() => loop.turn()).toThrow('broken');
    loop.settle();
    expect(loop.order).toEqual(['first', '0']);
    expect(line.size).toBe(0);
  });

  it('has no more than maxWaiting', () => {
    const line = loop.line({ maxWaiting: 5 });
    loop.spend(5);
    const all = Array.from({ length: 7 }, (_, i) => loop.work(`${i}`, i % 4));
    for (const one of all) line.enter(one);
    expect(line.size).toBe(5);
    expect(all.flatMap(({ endings }) => endings)).toEqual(['full', 'full']);
  });

  it.each([-5_000_000, 4_000_000_000_000])(
    'takes a clock that jumps by %d µs for no wait',
    (by) => {
      const line = filled(4, 3);
      loop.now += by;
      loop.settle();
      expect(line.stats.byTier[1]).toMatchObject({ late: 0, waited: 3 });
      expect(line.meanRunMicros).toBeGreaterThan(0);
      expect(line.meanRunMicros).toBeLessThan(10_000);
      expect(line.stats.waitedMicros).toBeLessThan(100_000);
    },
  );

  it('stays within a slice also with a thousand to refuse', () => {
    const line = loop.line({ maxWaiting: 5000, intervalMicros: 1e7, targetMicros: 9e6 });
    loop.spend(5);
    const all = Array.from({ length: 2000 }, (_, i) => loop.work(`${i}`, i % 4));
    for (const one of all) line.enter(one);
    loop.spend(10_001);
    let longest = 0;
    while (loop.isAwake) longest = Math.max(longest, loop.turn());
    expect(all.every(({ endings }) => endings.join() === 'late')).toBe(true);
    expect(longest).toBeLessThan(5100);
  });

  it('only counts in observe mode, and runs everything', () => {
    const line = loop.line({ isObserved: true });
    for (let i = 0; i < 20; i++) line.enter(loop.work(`${i}`, 3, 4));
    expect([loop.order.length, line.size]).toEqual([20, 0]);
    loop.restedAt = loop.now - 201_000;
    line.enter(loop.work('x', 3));
    expect(line.stats.byTier[3]).toEqual({ ran: 2, waited: 18, full: 0, late: 1, gone: 0 });
  });

  it('is empty once it is switched to observing, or drained', () => {
    const line = filled(4, 3);
    line.change({ ...SETTINGS, isObserved: true });
    expect([line.size, loop.order.length]).toEqual([0, 4]);
    const other = filled(4, 3);
    other.drain();
    expect(other.size).toBe(0);
  });

  it('keeps what waits when there are other tiers', () => {
    const line = filled(1, 3);
    line.enter(loop.work('c', 3));
    line.change({ ...SETTINGS, tierCount: 2 });
    loop.settle();
    expect(loop.order).toEqual(['first', '0', '1', '2', 'c']);
  });

  describe('where the loop has no rest and connections are accepted, one a turn', () => {
    const standing = () => {
      const line = loop.line();
      loop.now = loop.restedAt + 201_000;
      loop.turn();
      return line;
    };

    it('runs nothing before all of them are there, and then the highest tier', () => {
      const line = standing();
      for (const [i, tier] of [3, 2, 0].entries()) {
        line.connected();
        if (i > 0) line.enter(loop.work(`${i}`, tier));
        loop.turn();
        expect(loop.order).toEqual([]);
      }
      line.enter(loop.work('last', 1));
      loop.settle();
      expect(loop.order).toEqual(['2', 'last', '1']);
    });

    it('is done with it when a turn has brought none', () => {
      const line = standing();
      line.connected();
      expect(line.tryBegin(0)).toBe(false);
      loop.turn();
      expect(line.tryBegin(0)).toBe(false);
      loop.turn();
      expect(line.tryBegin(0)).toBe(true);
      expect(loop.isAwake).toBe(false);
    });

    it('runs a slice after each slice in which they came', () => {
      const line = standing();
      for (let i = 0; i < 100; i++) {
        line.connected();
        loop.spend(1);
        line.enter(loop.work(`${i}`, 1));
        loop.turn();
      }
      // 1 ms each: a slice for callers, a slice for work.
      expect(loop.order.length).toBeGreaterThanOrEqual(80);
      expect(line.size + loop.order.length).toBe(100);
      loop.settle();
    });

    it('lets work pass at once while the loop rests, or where it only counts', () => {
      const line = loop.line();
      line.connected();
      expect(line.tryBegin(0)).toBe(true);
      loop.now = loop.restedAt + 201_000;
      loop.turn();
      const observing = loop.line({ isObserved: true });
      observing.connected();
      expect([observing.tryBegin(0), loop.isAwake]).toEqual([true, false]);
    });
  });

  describe('with maxInFlight', () => {
    it('lets the next run when one has ended', () => {
      const line = loop.line({ maxInFlight: 1 });
      const all = ['a', 'b', 'c'].map((name) => loop.work(name, 1));
      for (const one of all) beforeRun(one, () => line.started());
      for (const one of all) line.enter(one);
      loop.settle();
      expect([loop.order, line.inFlight]).toEqual([['a'], 1]);
      line.ended();
      loop.settle();
      expect(loop.order).toEqual(['a', 'b']);
    });

    it('refuses who waits too long for that, although nothing ends', () => {
      const line = loop.line({ maxInFlight: 1 });
      line.started();
      const one = loop.work('x', 1);
      line.enter(one);
      loop.rest(200);
      expect(one.endings).toEqual([]);
      loop.rest(201);
      expect(one.endings).toEqual(['late']);
    });
  });

  const beforeRun = (one: Work, before: () => void): void => {
    const run = one.run.bind(one);
    one.run = () => {
      before();
      run();
    };
  };
});

/** Any traffic: work of some tier and time, time that passes, turns, callers that leave. */
const traffic = fc.array(
  fc.oneof(
    { weight: 6, arbitrary: fc.record({ tier: fc.nat(3), ms: fc.constantFrom(0.1, 1, 4, 30) }) },
    { weight: 3, arbitrary: fc.constant('turn' as const) },
    { weight: 1, arbitrary: fc.record({ leave: fc.nat(50) }) },
    { weight: 1, arbitrary: fc.record({ rest: fc.integer({ min: 1, max: 300 }) }) },
    { weight: 1, arbitrary: fc.record({ busy: fc.integer({ min: 1, max: 60 }) }) },
  ),
  { minLength: 1, maxLength: 300 },
);

describe('whatever comes, in the line', () => {
  it('all work ends once, in order, within its slice, and nothing is forgotten', () => {
    fc.assert(
      fc.property(traffic, fc.constantFrom(3, 20, 1000), (events, maxWaiting) => {
        const loop = new ManualLoop();
        const line = loop.line({ maxWaiting });
        const all: Work[] = [];
        const longestRun = 30_000;
        let [longestTurn, mostWaiting, asleep] = [0, 0, 0];
        for (const event of events) {
          if (event === 'turn') {
            longestTurn = Math.max(longestTurn, loop.turn());
          } else if ('leave' in event) {
            const one = all[event.leave];
            if (one !== undefined && one.endings.length === 0) one.hasLeft = true;
          } else if ('rest' in event) {
            loop.settle();
            loop.rest(event.rest);
          } else if ('busy' in event) loop.spend(event.busy);
          else {
            const one = loop.work(`${all.length}`, event.tier, event.ms);
            all.push(one);
            line.enter(one);
            if (one.endings[0] === 'full') expectFullBelow(event.tier, loop, line);
          }
          mostWaiting = Math.max(mostWaiting, line.size);
          if (line.size > 0 && !loop.isAwake) asleep++;
        }
        loop.settle();
        expect(longestTurn).toBeLessThanOrEqual(SETTINGS.sliceMicros + longestRun + 40);
        expect(mostWaiting).toBeLessThanOrEqual(maxWaiting);
        expect(asleep).toBe(0);
        expect(all.filter((one) => one.endings.length !== (one.hasLeft ? 0 : 1))).toEqual([]);
        for (const tier of [0, 1, 2, 3]) {
          const ran = all.filter((one) => one.tier === tier && one.endings[0] === 'ran');
          const times = ran.map(({ ranAt }) => ranAt);
          expect(times).toEqual([...times].sort((a, b) => a - b));
        }
        const counts = line.stats.byTier.reduce(
          (sum, { ran, waited, full, late, gone }) => sum + ran + waited + full + late + gone,
          0,
        );
        expect(counts).toBe(all.length);
      }),
      { numRuns: 200 },
    );
  });

  /** At the same instant every lower tier would be refused as well. */
  function expectFullBelow(tier: number, loop: ManualLoop, line: ReturnType<ManualLoop['line']>) {
    const now = loop.now;
    for (let below = tier + 1; below < 4; below++) {
      const one = loop.work('probe', below);
      const before = line.stats.byTier[below]!.full;
      line.append(one);
      if (one.endings[0] !== 'full') throw new Error(`tier ${below} was let in`);
      (line.stats.byTier[below] as { full: number }).full = before;
      loop.now = now;
    }
  }

  it('a tier with one in time is served at least once in 64 runs a tier', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(3), { minLength: 300, maxLength: 600 }), (tiers) => {
        const loop = new ManualLoop();
        const line = loop.line({ targetMicros: 9e7, intervalMicros: 1e8, maxWaiting: 1e5 });
        loop.spend(5);
        const waiting = [0, 0, 0, 0];
        for (const tier of tiers) {
          line.enter(loop.work(`${tier}`, tier, 0.1));
          waiting[tier]!++;
        }
        // The highest tier never ends.
        for (let i = 0; i < 600; i++) line.enter(loop.work('0', 0, 0.1));
        loop.settle();
        const since = [0, 0, 0, 0];
        let longest = 0;
        for (const name of loop.order) {
          const served = Number(name);
          for (const tier of [1, 2, 3]) {
            since[tier] = served === tier || waiting[tier] === 0 ? 0 : since[tier]! + 1;
            longest = Math.max(longest, since[tier]);
          }
          waiting[served]!--;
        }
        expect(longest).toBeLessThanOrEqual(64 * 4);
      }),
      { numRuns: 30 },
    );
  });
});
