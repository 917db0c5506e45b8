import { MinuteLog } from '../../lib/common/minute-log.js';
import { StateLog } from '../../lib/common/state-log.js';
import { ManualClock } from '../support/manual-clock.js';

describe('a log by the minute', () => {
  const clock = new ManualClock();
  const told: string[] = [];
  const make = (worse?: (one: number, next: number) => number) =>
    new MinuteLog<number>(
      clock,
      {
        once: (name, event) => told.push(`${name} ${event}`),
        again: (name, count, event) => told.push(`${name} ${count} more, ${event}`),
      },
      worse,
    );
  beforeEach(() => void told.splice(0));

  it('tells the first at once, and all others at the end of the minute', () => {
    const log = make();
    for (const event of [1, 2, 3]) log.add('a', event);
    log.add('b', 7);
    expect(told).toEqual(['a 1', 'b 7']);
    clock.advance(59_999);
    expect(told).toHaveLength(2);
    clock.advance(1);
    expect(told.slice(2)).toEqual(['a 2 more, 3']);
    // Events that go on are told once a minute; one that has ended may begin anew.
    log.add('a', 4);
    log.add('b', 8);
    expect(told.slice(3)).toEqual(['b 8']);
    clock.advance(60_000);
    expect(told.slice(4)).toEqual(['a 1 more, 4']);
    log.close();
  });

  it('tells of the worst, where there is one', () => {
    const log = make(Math.max);
    for (const event of [1, 9, 3]) log.add('a', event);
    log.close();
    expect(told).toEqual(['a 1', 'a 2 more, 9']);
    expect(clock.pending).toBe(0);
  });

  it('has a bound on names', () => {
    const log = make();
    for (let n = 0; n < 3000; n++) log.add(`name ${n}`, n);
    expect(told).toHaveLength(1001);
    expect(told.at(-1)).toBe('(other) 1000');
    log.close();
    expect(told.at(-1)).toBe('(other) 1999 more, 2999');
  });
});

describe('a log of states', () => {
  let clock: ManualClock;
  let told: string[];
  let log: StateLog;
  beforeEach(() => {
    clock = new ManualClock();
    told = [];
    const warn = (text: string): void => void told.push(`! ${text}`);
    log = new StateLog(clock, { warn, log: (text) => told.push(text) });
  });
  const over = (): void => log.over('x', (time) => `up after ${time}`);

  it('tells the beginning and the end, once', () => {
    over();
    log.began('x', 'down');
    log.began('x', 'down');
    expect(log.isOn('x')).toBe(true);
    clock.advance(2500);
    over();
    over();
    expect(told).toEqual(['! down', 'up after 2.5 s']);
    clock.advance(60_000);
    expect([told.length, clock.pending]).toEqual([2, 0]);
  });

  it('what comes and goes is told once a minute', () => {
    for (let n = 0; n < 30; n++) {
      log.began('x', 'down');
      clock.advance(1000);
      over();
      clock.advance(1000);
    }
    expect(told).toEqual([
      '! down',
      'up after 1.0 s',
      '! down (29 times more within a minute, and is over now)',
    ]);
  });

  it('what stays is told of, however soon it comes back, and so is its end', () => {
    log.began('x', 'down');
    clock.advance(1000);
    over();
    clock.advance(9000);
    log.began('x', 'down again');
    clock.advance(49_999);
    expect(told).toHaveLength(2);
    clock.advance(1);
    expect(told.slice(2)).toEqual(['! down again (once more within a minute, and for 50 s now)']);
    clock.advance(600_000);
    over();
    expect(told.slice(3)).toEqual(['up after 650 s']);
    log.close();
    expect(clock.pending).toBe(0);
  });
});
