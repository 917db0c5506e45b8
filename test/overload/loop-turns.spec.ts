import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { LoopTurns } from '../../lib/overload/loop-turns.js';
import { until } from '../support/until.js';

describe('the turns of the loop', () => {
  let now: number;
  let timing: { idleTime: number; uvMetricsInfo?: { loopCount: number } };
  let immediates: (() => void)[];
  let turns: LoopTurns;

  beforeEach(() => {
    now = 1_000_000;
    timing = { idleTime: 500, uvMetricsInfo: { loopCount: 10 } };
    immediates = [];
    turns = new LoopTurns(
      () => now,
      (task) => immediates.push(task),
      timing,
    );
  });

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
    pass(3, 100);
    expect(turns.age(now)).toBe(3000);
    now += 2000;
    expect(turns.age(now)).toBe(5000);
    expect(immediates).toHaveLength(1);
    endTurn();
    pass(1);
    expect(turns.age(now)).toBe(1000);
  });

  it('share the work of several turns in which nobody asked', () => {
    pass(40, 0, 8);
    expect(turns.age(now)).toBe(5000);
  });

  it('count as one where the runtime does not count them', () => {
    delete timing.uvMetricsInfo;
    now += 7000;
    expect(turns.age(now)).toBe(7000);
  });

  it('know when the loop last had nothing to do', () => {
    const begun = now;
    pass(300, 0.1);
    turns.age(now);
    expect(turns.restedAt).toBe(begun);
    endTurn();
    pass(5, 0.3);
    turns.age(now);
    expect(turns.restedAt).toBe(now);
  });

  it('begin anew when the line has run its slice', () => {
    pass(1);
    turns.age(now);
    endTurn();
    pass(5, 0, 0);
    turns.ended();
    pass(2);
    expect(turns.age(now)).toBe(2000);
  });

  it.each([-3_600_000, 7_200_000])('are new after the clock has jumped by %d ms', (ms) => {
    pass(1);
    turns.age(now);
    now += ms * 1000;
    expect(turns.age(now)).toBe(0);
    endTurn();
    now += ms * 1000;
    expect(turns.age(now)).toBe(0);
    expect(turns.restedAt).toBeLessThanOrEqual(now);
  });

  it('keep the longest of them until it is told', () => {
    pass(1);
    turns.age(now);
    now += 1_500_000;
    endTurn();
    pass(1, 5);
    turns.age(now);
    expect(turns.takeLongest()).toBe(1_501_000);
    expect(turns.takeLongest()).toBe(0);
  });

  it('tell the last one that is over, not the one in which somebody asks', () => {
    pass(1);
    turns.age(now);
    now += 8000;
    endTurn();
    pass(0.1, 5);
    turns.age(now);
    expect(turns.lastMicros).toBe(9000);
  });

  it('are those of this process', async () => {
    const micros = (): number => performance.now() * 1000;
    const real = new LoopTurns(micros, (task) => void setImmediate(task));
    const loops = (): number => performance.nodeTiming.uvMetricsInfo?.loopCount ?? 0;
    const loopsBefore = loops();
    await sleep(5);
    // What was busy is spread over all turns since the last look, of which a busy machine makes several.
    const turns = Math.max(1, loops() - loopsBefore);
    const began = micros();
    while (micros() - began < 20_000);
    const busy = real.age(micros());
    expect(busy).toBeGreaterThanOrEqual(20_000 / turns);
    const busyUntil = micros();
    await until(() => real.age(micros()) < busy && real.restedAt > busyUntil);
  });
});
