import { serialize } from 'node:v8';
import { DueAnswers, LongFingerprints } from '../../lib/degradation/route-answers.js';

const EVERY = 1000;
const dueAnswers = (route = 'a', long = new LongFingerprints()) => new DueAnswers(10, route, long);

/** Whether it was due; it is put off then. */
function look(due: DueAnswers, fingerprint: string, now: number): boolean {
  const isDue = due.isDue(fingerprint, now);
  if (isDue) due.postpone(fingerprint, now + EVERY);
  return isDue;
}

describe('an answer', () => {
  it('is due once in its time', () => {
    const due = dueAnswers();
    const seen = [0, 1, 999, 1000, 1001, 1999, 2000].map((now) => look(due, 'q', now));
    expect(seen).toEqual([true, false, false, true, false, false, true]);
  });

  it('is due by itself, whatever is with others', () => {
    const due = dueAnswers();
    expect([look(due, 'a', 0), look(due, 'b', 0)]).toEqual([true, true]);
  });

  it('is remembered while it is asked for, however many others there are', () => {
    const due = dueAnswers();
    look(due, 'hot', 0);
    let again = 0;
    for (let i = 0; i < 500; i++) {
      look(due, `cold-${i}`, 1);
      if (look(due, 'hot', 1)) again++;
    }
    expect(again).toBe(0);
  });

  it('of a long request is due once in its time, too', () => {
    const due = dueAnswers();
    const long = 'x'.repeat(100_000);
    const seen = [0, 1, 999, 1000].map((now) => [1, 2].map((n) => look(due, long + n, now)));
    expect(seen).toEqual([
      [true, true],
      [false, false],
      [false, false],
      [true, true],
    ]);
  });

  it('of long requests without end takes no memory of theirs', () => {
    const due = dueAnswers();
    const long = 'x'.repeat(200);
    let isDue = 0;
    for (let i = 0; i < 40_000; i++) if (look(due, long + i, 0)) isDue++;
    expect(isDue).toBe(40_000);
    expect(serialize(due).length).toBeLessThan(200_000);
  });

  it('of a long request to one route is due by itself, whatever is asked of others', () => {
    const long = new LongFingerprints();
    const [a, b] = ['a', 'b'].map((route) => dueAnswers(route, long));
    const fingerprint = 'x'.repeat(200);
    const seen = [a, b, a, b].map((route) => look(route!, fingerprint, 0));
    expect(seen).toEqual([true, true, false, false]);
  });

  it('of long requests to 100 routes takes the memory of one', () => {
    const long = new LongFingerprints();
    const routes = Array.from({ length: 100 }, (_, i) => dueAnswers(`route-${i}`, long));
    for (const route of routes) look(route, 'x'.repeat(200), 0);
    expect(serialize(routes).length).toBeLessThan(220_000);
  });

  it('of requests without end takes the memory of two generations', () => {
    const due = dueAnswers();
    for (let i = 0; i < 10_000; i++) look(due, `q-${i}`, 0);
    const { young, old } = due as unknown as Record<'young' | 'old', Map<string, number>>;
    expect(young.size + old.size).toBeLessThanOrEqual(20);
  });
});
