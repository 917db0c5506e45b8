import {
  byDenials,
  capacityText,
  denialsOf,
  errorPart,
  isHot,
  lossOf,
  promiseOf,
  shareTone,
  storeJudgement,
} from '../../lib/dashboard/page/judge.js';
import { labelsOf } from '../../lib/dashboard/page/marks.js';
import { type Mark } from '../../lib/observability/state.js';

describe('denials on the page', () => {
  const usual = { denied: 0.3, part: 0.001 };

  it('are red only where they are more than usual', () => {
    expect(denialsOf(280, 0.3, usual)).toMatchObject({ tone: 'ok', word: '0.11 %, as usual' });
    expect(denialsOf(280, 28, usual)).toMatchObject({ tone: 'bad', word: '10 %, usually 0.1 %' });
    const often = { denied: 50, part: 0.2 };
    expect(denialsOf(200, 50, often)).toMatchObject({ tone: 'ok', word: '25 %, as usual' });
    expect(denialsOf(200, 2, often)).toMatchObject({ tone: 'ok', word: '1 %, usually 20 %' });
  });

  it('are never as usual while an alert of them fires', () => {
    const often = { denied: 50, part: 0.2 };
    expect(denialsOf(200, 50, often, true)).toMatchObject({ word: '25 %, usually 20 %' });
  });

  it('are red above a part of all where it is not known what is usual', () => {
    expect(denialsOf(100, 5, null)).toMatchObject({ tone: 'ok', word: '5 % of all' });
    expect(denialsOf(100, 6, null).tone).toBe('bad');
    expect(denialsOf(0, 0, null)).toMatchObject({ tone: 'ok', word: '0 % of all' });
  });
});

describe('policies on the page', () => {
  it('have those first that turn most away in a second, then the busiest', () => {
    const rows = [
      { name: 'search-user', rate: 107, denied: 0 },
      { name: 'cart', rate: 3, denied: 0 },
      { name: 'login-ip', rate: 7, denied: 2 },
      { name: 'pages', rate: 900, denied: 9 },
    ];
    expect(rows.sort(byDenials).map(({ name }) => name)).toEqual([
      ...['pages', 'login-ip', 'search-user', 'cart'],
    ]);
  });

  it('have a bar and a figure in red above 5 %, as their note says', () => {
    expect([0, 0.005, 0.02, 0.05, 0.0501, 1].map(shareTone)).toEqual([
      ...['', '', 'degraded', 'degraded', 'deny', 'deny'],
    ]);
  });
});

describe('Redis on the page', () => {
  const store = { isUp: true, awayNodes: 0, sinceMs: undefined };
  const judged = (p99Ms: number | undefined, more: object = {}) =>
    storeJudgement({ ...{ store, p99Ms, errors: 0, timeoutMs: 20 }, ...more });

  it('is judged by how long a decision waits for it', () => {
    expect(judged(5)).toEqual({
      ...{ tone: 'ok', word: 'fast' },
      why: '99 of 100 calls take at most 5 ms; a decision waits at most 20 ms for Redis',
    });
    expect(judged(10)).toMatchObject({ tone: 'ok', word: 'in time' });
    expect(judged(11)).toMatchObject({ tone: 'warn', word: 'slow' });
    expect(judged(21)).toMatchObject({ tone: 'bad', word: 'too late' });
    expect(judged(undefined)).toMatchObject({ tone: 'ok', word: '' });
    expect(judged(1, { errors: 2 })).toMatchObject({ tone: 'warn', word: 'some calls fail' });
    expect(judged(1, { store: { ...store, isUp: false } })).toMatchObject({ word: 'away' });
    expect(judged(1, { store: { ...store, awayNodes: 1 } })).toMatchObject({
      ...{ tone: 'bad', word: 'away for 1 node' },
    });
  });
});

describe('errors of a resource on the page', () => {
  it('are a part of its calls, those that were turned away among them', () => {
    expect(errorPart({ rate: 10, denied: 5, errors: 2 })).toBe(0.2);
    expect(errorPart({ rate: 0, denied: 0, errors: 0 })).toBeUndefined();
  });

  it('are never more than all, as calls end later than they begin', () => {
    expect(errorPart({ rate: 3, denied: 0, errors: 4 })).toBe(1);
    expect(errorPart({ rate: 3, denied: 2, errors: 2 })).toBe(0.5);
    expect(errorPart({ rate: 0, denied: 0, errors: 1 })).toBe(1);
  });
});

describe('an app on the page', () => {
  const checkout = { name: 'checkout', used: 99, denied: 0, guaranteed: 180, ceiling: 320 };

  it('says what it uses of its promise, and that nothing was denied', () => {
    expect(promiseOf(checkout)).toBe('99 of 180 promised · ceiling 320');
    expect(lossOf(checkout)).toBe('nothing turned away');
    expect(lossOf({ ...checkout, denied: 0.3 })).toBe('0.3/s turned away (0.3 %)');
  });

  it('says what is lent to it, and whether its promise is kept while it is turned away', () => {
    const busy = { ...checkout, used: 200, denied: 150 };
    expect(promiseOf(busy)).toBe('180 promised + 20 lent · ceiling 320');
    expect([isHot(busy), lossOf(busy)]).toEqual([true, '150/s turned away, promise kept']);
    expect(lossOf({ ...busy, used: 100 })).toBe('150/s turned away');
    const policy = { name: 'login', used: 2, denied: 2 };
    expect([promiseOf(policy), lossOf(policy)]).toEqual(['4/s asked for', '2/s turned away']);
  });

  it('is measured by the share of this node while Redis is away', () => {
    const alone = { name: 'checkout', used: 37, denied: 0, ceiling: 54, share: 54 };
    expect([promiseOf(alone), lossOf(alone)]).toEqual([
      "37 of this node's share of 54",
      'nothing turned away',
    ]);
    expect(lossOf({ ...alone, used: 54, denied: 50 })).toBe('50/s turned away');
  });
});

describe('the capacity on the page', () => {
  it('says at once whether there is room, and of how many minutes that is known', () => {
    expect(capacityText(0, 12, 500, false)).toBe('Learning: 0 of 180 minutes known.');
    expect(capacityText(4, 252, 500, false)).toBe(
      'Learning: 4 of 180 minutes known; so far the busiest minute used 252 of 500/s: there is room for 248/s.',
    );
    expect(capacityText(180, 460, 500, false)).toBe(
      'The busiest minute used 460 of 500/s: there is room for only 40/s.',
    );
    expect(capacityText(180, 510, 500, false)).toMatch(/510 of 500\/s: there is no room\.$/);
    expect(capacityText(4, 252, undefined, false)).toMatch(/ the busiest minute used 252\/s\.$/);
    expect(capacityText(180, 252, 500, true)).toBe(
      'The busiest minute used 252 of 500/s, but just now about all of the capacity or more is asked for.',
    );
  });
});

describe('marks of a chart', () => {
  const mark = (atMs: number, text: string, kind: Mark['kind'] = 'overload') => ({ atMs, text, kind }); // oxfmt-ignore
  const LETTER = 6.4;

  it('that are close to each other are one, told by its cause', () => {
    const marks = [
      mark(100, 'search is offline', 'mode'),
      mark(101, 'Redis is away', 'store'),
      mark(103, 'reports is offline', 'mode'),
    ];
    expect(labelsOf(marks, (at) => at, 0, 900)).toEqual([
      { at: 100, text: '‹ Redis is away +2', isLate: false, line: 0 },
    ]);
  });

  it('that are of one kind are told by the latest', () => {
    const marks = [mark(100, 'overload is over'), mark(103, 'overload begins')];
    expect(labelsOf(marks, (at) => at, 0, 900)[0]!.text).toBe('‹ overload begins +1');
  });

  it('have words on their other side where there is no room on the one', () => {
    const marks = [
      ...[mark(350, 'breaker of catalog-db opens', 'breaker'), mark(450, 'breaker of catalog-db is closed', 'breaker')], // oxfmt-ignore
      ...[mark(470, 'Redis is away', 'store'), mark(550, 'Redis answers again', 'store')],
    ];
    const labels = labelsOf(marks, (at) => at, 46, 600);
    expect(labels.map(({ isLate, line }) => [isLate, line])).toEqual([
      ...[[true, 0], [true, 1], [false, 1], [true, 0]], // oxfmt-ignore
    ]);
  });

  it('have words that never lie on each other, nor beyond the chart', () => {
    const marks = [20, 60, 110, 300, 330, 560, 590].map((at) => mark(at, 'overload is over'));
    const labels = labelsOf(marks, (at) => at, 10, 600);
    const spans = labels
      .filter(({ line }) => line !== undefined)
      .map(({ at, text, isLate, line }) => {
        const width = text.length * LETTER;
        return { line, from: isLate ? at - width : at, to: isLate ? at : at + width };
      });
    expect(labels).toHaveLength(7);
    expect(spans.length).toBeGreaterThan(4);
    for (const [index, one] of spans.entries()) {
      expect(one.from).toBeGreaterThanOrEqual(0);
      expect(one.to).toBeLessThanOrEqual(600);
      for (const other of spans.slice(index + 1)) {
        expect(one.line !== other.line || one.to < other.from || other.to < one.from).toBe(true);
      }
    }
    expect(labelsOf([mark(5, 'before'), mark(700, 'after')], (at) => at, 10, 600)).toEqual([]);
  });
});
