import { DueAnswers } from '../../lib/degradation/due-answers.js';

const EVERY = 1000;

describe('an answer', () => {
  it('is due once in its time', () => {
    const due = new DueAnswers(10);
    const seen = [0, 1, 999, 1000, 1001, 1999, 2000].map((now) => due.isDue('q', now, EVERY));
    expect(seen).toEqual([true, false, false, true, false, false, true]);
  });

  it('is due by itself, whatever is with others', () => {
    const due = new DueAnswers(10);
    expect([due.isDue('a', 0, EVERY), due.isDue('b', 0, EVERY)]).toEqual([true, true]);
  });

  it('is remembered while it is asked for, however many others there are', () => {
    const due = new DueAnswers(10);
    due.isDue('hot', 0, EVERY);
    let again = 0;
    for (let i = 0; i < 500; i++) {
      due.isDue(`cold-${i}`, 1, EVERY);
      if (due.isDue('hot', 1, EVERY)) again++;
    }
    expect(again).toBe(0);
  });

  it('of a long question is remembered by a number', () => {
    const due = new DueAnswers(10);
    const long = 'x'.repeat(100_000);
    expect([due.isDue(`${long}1`, 0, EVERY), due.isDue(`${long}2`, 0, EVERY)]).toEqual([
      true,
      true,
    ]);
    expect(due.isDue(`${long}1`, 1, EVERY)).toBe(false);
    const { young } = due as unknown as { young: Map<string | number, number> };
    expect([...young.keys()].map((key) => typeof key)).toEqual(['number', 'number']);
  });

  it('of questions without end takes the memory of two generations', () => {
    const due = new DueAnswers(10);
    for (let i = 0; i < 10_000; i++) due.isDue(`q-${i}`, 0, EVERY);
    const { young, old } = due as unknown as Record<'young' | 'old', Map<string, number>>;
    expect(young.size + old.size).toBeLessThanOrEqual(20);
  });
});
