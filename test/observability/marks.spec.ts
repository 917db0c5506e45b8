import { FleetMarks } from '../../lib/observability/fleet/fleet-marks.js';
import { keptMarks, Marks } from '../../lib/observability/marks.js';
import { type Facts } from '../../lib/observability/sources.js';
import { type FleetNode, type Mark, type ResourceState } from '../../lib/observability/state.js';
import { ManualClock } from '../support/manual-clock.js';
import { SharedBoard } from './shared-board.js';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW_MS = 30 * DAY_MS;
const mark = (atMs: number, kind: Mark['kind'], text: string = kind): Mark => ({
  atMs,
  kind,
  text,
});
const textsOf = (marks: readonly Mark[]): string[] => marks.map(({ text }) => text);

type State = 'closed' | 'open' | 'half-open';

describe('the marks of a process', () => {
  /** A process with a breaker, whose Redis can go away. */
  function stand() {
    const marks = new Marks();
    const facts = {
      storeIsUp: true,
      epoch: 1,
      adjusts: [] as object[],
      breaker: 'closed' as State,
    };
    let atMs = NOW_MS;
    const second = (change: Partial<typeof facts> = {}): Mark[] => {
      Object.assign(facts, change);
      const { breaker, ...rest } = facts;
      const protection = { db: { breaker: { state: breaker } }, cache: {} };
      marks.look({ ...rest, protection } as unknown as Facts, (atMs += 1000));
      facts.adjusts = [];
      return marks.all();
    };
    return { second };
  }

  it('tell of an outage for as long as a chart goes back, whatever an overload adds to them', () => {
    const { second } = stand();
    second();
    second({ storeIsUp: false });
    second({ storeIsUp: true });
    const adjusts = Array.from({ length: 32 }, (_, n) => ({ app: `a${n}`, perSecond: 1 }));
    for (let n = 0; n < 100; n++) second({ adjusts });
    const marks = second();
    expect(marks).toHaveLength(64);
    expect(textsOf(marks).slice(0, 2)).toEqual(['Redis is away', 'Redis answers again']);
  });

  it('tell when a breaker opens and when it is closed, and not each time it tries', () => {
    const { second } = stand();
    for (const breaker of ['closed', 'open', 'half-open', 'open', 'half-open'] as const) {
      second({ breaker });
    }
    expect(textsOf(second())).toEqual(['breaker of db opens']);
    expect(textsOf(second({ breaker: 'closed' }))).toEqual([
      'breaker of db opens',
      'breaker of db is closed',
    ]);
  });

  it('are without what was so before the first look', () => {
    const { second } = stand();
    expect(second({ breaker: 'open', storeIsUp: false })).toEqual([]);
  });
});

describe('the marks that are kept', () => {
  it('are those of a week, and no more than fit: what says least goes first', () => {
    const modes = Array.from({ length: 80 }, (_, n) => mark(NOW_MS - n, 'mode'));
    const old = mark(NOW_MS - 7 * DAY_MS - 1, 'store', 'too old');
    const store = mark(NOW_MS - 6 * DAY_MS, 'store');
    const kept = keptMarks([old, ...modes, store], NOW_MS);
    expect(kept).toHaveLength(64);
    expect(kept[0]).toBe(store);
    expect(kept[1]!.atMs).toBe(NOW_MS - 62);
  });
});

describe('the marks of a fleet', () => {
  function stand() {
    const board = new SharedBoard(new ManualClock(0));
    const leader = (): FleetMarks => new FleetMarks(board.of({}));
    const look = (
      marks: FleetMarks,
      breaker: State,
      { own = [] as readonly Mark[], atMs = NOW_MS, open = ['api-2'] } = {},
    ): Promise<Mark[]> => {
      const resources = [{ resource: 'db', breaker } as ResourceState];
      const nodes = ['api-1', 'api-2', 'api-3'].map((node) => {
        return { node, ...(open.includes(node) && { open: ['db'] }) } as FleetNode;
      });
      return marks.keep({ own, resources, nodes, atMs });
    };
    return { board, leader, look };
  }

  it('name the node whose breaker opens, or how many there are', async () => {
    const { leader, look } = stand();
    const marks = leader();
    await marks.restore();
    await look(marks, 'closed');
    expect(textsOf(await look(marks, 'open'))).toEqual(['breaker of db opens on api-2']);
    await look(marks, 'closed');
    const all = await look(marks, 'open', { open: ['api-1', 'api-2', 'api-3'] });
    expect(textsOf(all).slice(1)).toEqual(['breaker of db is closed', 'breaker of db opens on 3 nodes']); // oxfmt-ignore
  });

  it('stay when another node leads, once of what both have seen', async () => {
    const { leader, look } = stand();
    const first = leader();
    await first.restore();
    await look(first, 'closed', { own: [mark(NOW_MS - HOUR_MS, 'revision')] });
    const before = await look(first, 'open', {
      own: [mark(NOW_MS - HOUR_MS, 'revision'), mark(NOW_MS - 9000, 'store')],
    });
    expect(textsOf(before)).toEqual(['revision', 'store', 'breaker of db opens on api-2']);
    const next = leader();
    await next.restore();
    // Its own clock is a little late, and its own breaker is told with those of all.
    const own = [
      mark(NOW_MS - 8000, 'store'),
      mark(NOW_MS - 500, 'breaker', 'breaker of db opens'),
    ];
    expect(await look(next, 'open', { own })).toEqual([before[0], own[0], before[2]]);
    expect(textsOf(await look(next, 'closed', { own })).at(-1)).toBe('breaker of db is closed');
    // Two of its own within seconds are two.
    const twice = [mark(NOW_MS - 8000, 'store'), mark(NOW_MS - 2000, 'store')];
    const last = await look(next, 'closed', { own: twice });
    expect(last.filter(({ kind }) => kind === 'store')).toEqual(twice);
  });

  it('are written when they change, and take nothing of what somebody else has written', async () => {
    const { board, leader, look } = stand();
    let writes = 0;
    const { set } = board;
    board.set = (...args) => (writes++, set.apply(board, args));
    const marks = leader();
    await marks.restore();
    for (let n = 0; n < 5; n++) await look(marks, 'closed', { own: [mark(NOW_MS, 'store')] });
    expect(writes).toBe(1);
    const good = [NOW_MS, 'store', 'x'.repeat(900)];
    const early = [NOW_MS + HOUR_MS, 'store', 'by a clock that is ahead'];
    const mixed = [1, [2], ['x', 'store', ''], [3, 'other', ''], early, good];
    for (const text of ['no JSON', '{}', JSON.stringify(mixed)]) {
      await set.call(board, 'marks', text, 1e9);
      await marks.restore();
    }
    expect(await look(marks, 'closed')).toEqual([mark(NOW_MS, 'store', 'x'.repeat(160))]);
  });
});
