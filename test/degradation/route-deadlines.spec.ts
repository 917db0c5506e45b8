import {
  DeadlineQueue,
  DeadlineQueues,
  type Awaited,
} from '../../lib/degradation/route-deadlines.js';
import { ManualClock } from '../support/manual-clock.js';

const TIMEOUT_MS = 100;

describe('calls that may take equally long', () => {
  let clock: ManualClock;
  let deadlines: DeadlineQueue;
  let timers: number;
  let overdue: string[];

  beforeEach(() => {
    clock = new ManualClock();
    timers = 0;
    overdue = [];
    deadlines = new DeadlineQueue(TIMEOUT_MS, {
      now: () => clock.now(),
      after: (ms, task) => {
        timers++;
        return clock.after(ms, task);
      },
    });
  });

  function begin(name: string): Awaited {
    const call: Awaited = {
      overdueAt: 0,
      before: undefined,
      after: undefined,
      overdue: () => overdue.push(name),
    };
    deadlines.add(call, clock.now());
    return call;
  }

  it('are overdue each at its own time', () => {
    begin('a');
    clock.advance(30);
    begin('b');
    clock.advance(69);
    expect(overdue).toEqual([]);
    clock.advance(1);
    expect(overdue).toEqual(['a']);
    clock.advance(29);
    expect(overdue).toEqual(['a']);
    clock.advance(1);
    expect(overdue).toEqual(['a', 'b']);
  });

  it('are not overdue when they have ended, wherever they stood', () => {
    const calls = ['a', 'b', 'c', 'd', 'e'].map(begin);
    for (const at of [2, 0, 4]) deadlines.remove(calls[at]!);
    clock.advance(TIMEOUT_MS);
    expect(overdue).toEqual(['b', 'd']);
  });

  it('may be taken out twice, and after their time', () => {
    const [a, b] = [begin('a'), begin('b')];
    deadlines.remove(a);
    deadlines.remove(a);
    clock.advance(TIMEOUT_MS);
    deadlines.remove(b);
    begin('c');
    clock.advance(TIMEOUT_MS);
    expect(overdue).toEqual(['b', 'c']);
  });

  it('share a timer', () => {
    for (let i = 0; i < 1000; i++) {
      deadlines.remove(begin(`${i}`));
      clock.advance(1);
    }
    expect(timers).toBeLessThan(25);
  });

  it('need no timer when there are none', () => {
    deadlines.remove(begin('a'));
    clock.advance(TIMEOUT_MS);
    expect(timers).toBe(1);
    clock.advance(10 * TIMEOUT_MS);
    expect(timers).toBe(1);
  });

  it('may begin and end others when they are overdue', () => {
    const others: Awaited[] = [];
    const call: Awaited = {
      overdueAt: 0,
      before: undefined,
      after: undefined,
      overdue: () => {
        overdue.push('first');
        deadlines.remove(others[0]!);
        begin('later');
      },
    };
    deadlines.add(call, clock.now());
    others.push(begin('other'));
    clock.advance(TIMEOUT_MS);
    expect(overdue).toEqual(['first']);
    clock.advance(TIMEOUT_MS);
    expect(overdue).toEqual(['first', 'later']);
  });

  it('are forgotten when it is closed', () => {
    begin('a');
    deadlines.close();
    clock.advance(TIMEOUT_MS);
    expect(overdue).toEqual([]);
  });
});

describe('the queues of routes', () => {
  const usual = (slowMs: number) => ({ slowMs, deadlineMs: 2000 });

  it('are shared, and forgotten when no route and no call needs them', () => {
    const queues = new DeadlineQueues(new ManualClock());
    const [one, other] = [queues.of('a', {}, usual(500)), queues.of('b', {}, usual(500))];
    expect(other.reads.slow).toBe(one.reads.slow);
    const next = queues.of('a', {}, usual(600));
    const waiting = { overdueAt: 0, before: undefined, after: undefined, overdue: () => {} };
    one.reads.rest!.add(waiting, 0);
    queues.keep([next]);
    const again = queues.of('a', {}, usual(500));
    expect(again.reads.slow).not.toBe(one.reads.slow);
    expect(again.reads.rest).toBe(one.reads.rest);
    expect(queues.of('a', {}, usual(600)).reads.slow).toBe(next.reads.slow);
  });
});
