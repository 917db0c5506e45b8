import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Line } from '../../lib/overload/line.js';
import { LoopTurns } from '../../lib/overload/loop-turns.js';
import { until } from '../support/until.js';
import { SETTINGS } from './manual-loop.js';

describe('the turns of the loop', () => {
  let now: number;
  let timing: { idleTime: number; uvMetricsInfo?: { loopCount: number } };
  let immediates: (() => void)[];
  let turns: LoopTurns;

  beforeEach(() => {
    now = 1_000_000;
    timing = { idleTime: 500, uvMetricsInfo: { loopCount: 10 } };
    immediates = [];
    turns = make();
  });

  const make = (): LoopTurns =>
    new LoopTurns(
      () => now,
      (task) => immediates.push(task),
      timing,
    );

  /** So long busy and idle, in so many turns. */
  const pass = (busyMs: number, idleMs = 0, loops = 1): void => {
    now += (busyMs + idleMs) * 1000;
    timing.idleTime += idleMs;
    timing.uvMetricsInfo!.loopCount += loops;
  };
  const endTurn = (): void => {
    for (const task of immediates.splice(0)) task();
  };

  it('have the age of the work since the turn before', () => {
    pass(3);
    expect(turns.age(now)).toBe(3000);
    now += 2000;
    expect(turns.age(now)).toBe(5000);
    pass(1);
    expect(turns.age(now)).toBe(1000);
  });

  it('are told by their number, without an immediate', () => {
    pass(3);
    turns.age(now);
    pass(0, 5);
    turns.age(now);
    expect(immediates).toHaveLength(0);
  });

  it.each([0.01, 100])('begin with the first question after a poll of %d ms', (idleMs) => {
    pass(3, idleMs);
    expect(turns.age(now)).toBe(0);
    now += 2000;
    expect(turns.age(now)).toBe(2000);
  });

  it('have the age of what the turn before did after its last question', () => {
    pass(3, 100);
    turns.age(now);
    pass(4);
    expect(turns.age(now)).toBe(4000);
    expect(turns.lastMicros).toBe(4000);
  });

  it('end with the slice of the line', () => {
    pass(3, 100);
    turns.age(now);
    now += 6000;
    turns.ended();
    expect(turns.lastMicros).toBe(6000);
    now += 1000;
    expect(turns.age(now)).toBe(1000);
    expect(turns.lastMicros).toBe(6000);
  });

  it('end with an immediate where the runtime does not count them', () => {
    delete timing.uvMetricsInfo;
    turns = make();
    now += 7000;
    expect(turns.age(now)).toBe(7000);
    now += 1000;
    expect(turns.age(now)).toBe(8000);
    expect(immediates).toHaveLength(1);
    endTurn();
    expect(turns.lastMicros).toBe(8000);
    now += 2000;
    expect(turns.age(now)).toBe(2000);
  });

  it.each([true, false])(
    'let one caller who keeps the loop busy fare as well as it does, if the line only observes: %s',
    (isObserved) => {
      const clock = { now: () => now, every: () => () => {} };
      const line = new Line({ ...SETTINGS, isObserved: !isObserved }, turns, clock, (task) =>
        immediates.push(task),
      );
      line.change({ ...SETTINGS, isObserved });
      for (let request = 0; request < 100; request++) {
        pass(0);
        const run = (): void => void (now += 60_000);
        line.enter({ tier: 0, isGone: () => false, refuse: () => {}, run });
        endTurn();
      }
      expect(line.stats.byTier[0]).toMatchObject({ full: 0, late: 0 });
    },
  );

  it('share the work of several turns in which nobody asked', () => {
    pass(40, 0, 8);
    expect(turns.age(now)).toBe(5000);
  });

  it('know when the loop last had nothing to do', () => {
    const begun = now;
    pass(300, 0.1);
    turns.age(now);
    expect(turns.restedAt).toBe(begun);
    pass(5, 0.3);
    turns.age(now);
    expect(turns.restedAt).toBe(now);
  });

  it('begin anew when the line has run its slice', () => {
    pass(1);
    turns.age(now);
    pass(5);
    turns.ended();
    pass(2);
    expect(turns.age(now)).toBe(2000);
  });

  it.each([-3_600_000, 7_200_000])('are new after the clock has jumped by %d ms', (ms) => {
    pass(1);
    turns.age(now);
    now += ms * 1000;
    expect(turns.age(now)).toBe(0);
    pass(0);
    now += ms * 1000;
    expect(turns.age(now)).toBe(0);
    expect(turns.restedAt).toBeLessThanOrEqual(now);
  });

  it('keep the longest of them until it is told', () => {
    pass(1);
    turns.age(now);
    now += 1_500_000;
    pass(0, 5);
    turns.age(now);
    expect(turns.takeLongest()).toBe(1_501_000);
    expect(turns.takeLongest()).toBe(0);
  });

  it('are the longer the later somebody asks, who sees one that blocks', () => {
    pass(0, 5);
    turns.age(now);
    now += 1_500_000;
    turns.age(now);
    expect(turns.takeLongest()).toBe(1_500_000);
  });

  it('tell the last one that is over, not the one in which somebody asks', () => {
    pass(1);
    turns.age(now);
    now += 8000;
    pass(0, 5);
    turns.age(now);
    now += 1000;
    turns.age(now);
    expect(turns.lastMicros).toBe(9000);
  });

  it('are those of this process', async () => {
    const micros = (): number => performance.now() * 1000;
    const real = new LoopTurns(micros, (task) => void setImmediate(task));
    await sleep(5);
    const began = micros();
    real.age(began);
    while (micros() - began < 20_000);
    const busy = real.age(micros());
    expect(busy).toBeGreaterThanOrEqual(20_000);
    const busyUntil = micros();
    await until(() => real.age(micros()) < busy && real.restedAt > busyUntil);
  });
});
