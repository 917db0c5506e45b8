import { isShort, limitedOf, why, type PolicyLimit } from '../../lib/observability/limited.js';
import { type AppState, type ShownKey, type WatchedState } from '../../lib/observability/state.js';
import { verdict } from '../../lib/observability/verdict.js';
import { quietFleet, seriesState } from './snapshots.js';

const app = (name: string, more: Partial<AppState> = {}): AppState => ({
  ...{ app: name, guaranteed: 100, burst: 200, priority: 2, used: 100, denied: 20 },
  ...{ demand: 120, outstanding: 0, nodes: 3, modes: { batch: 3 }, ...more },
});
const key = (more: Partial<ShownKey> = {}): ShownKey => ({
  ...{ policy: 'login', key: '1a2b3c4d', denied: 30, source: 'store', ...more },
});
const quotaOf = (apps: readonly AppState[], overloaded = false): WatchedState['quota'] => ({
  ...{ capacity: 300, demand: 320, stock: 0, depth: 60, outstanding: 0, overloaded, apps },
});
const AWAY = { isUp: false, awayNodes: 1, sinceMs: undefined };
const UP = { isUp: true, awayNodes: 0, sinceMs: undefined };
const LOGIN: PolicyLimit = { capacity: 5, windowMs: 60_000, failureMode: 'local' };

/** A node by itself. */
const alone = (more: Partial<WatchedState>): WatchedState => {
  const { nodes: _nodes, ...state } = quietFleet(more);
  return state;
};

const reasons = (state: WatchedState, login: PolicyLimit | null = LOGIN): string[] =>
  limitedOf(state, () => login ?? undefined).map((one) => one.why);

describe('who is limited, and why', () => {
  it('says it in one clause, by the tier that decided', () => {
    expect([
      why({ tier: 'cluster', demand: 52_000, capacity: 50_000 }),
      why({ tier: 'cluster', demand: undefined, capacity: 50_000 }),
      why({ tier: 'app', of: 'ceiling', limit: 16_000, isInBursts: false }),
      why({ tier: 'policy', limit: { capacity: 5, windowMs: 60_000 } }),
      why({ tier: 'policy', limit: { capacity: 5, windowMs: 90_000 } }),
      why({ tier: 'policy', limit: undefined }),
    ]).toEqual([
      'all apps together ask for 52k/s of 50k/s',
      'all apps together ask for about all of the capacity of 50k/s, or more',
      'over its ceiling of 16k/s',
      'more than 5/min by this key',
      'more than 5 in 90 s by this key',
      'more than its policy allows by this key',
    ]);
  });

  it('has apps and keys by their denials of the last minute, the most first', () => {
    const quota = quotaOf([app('search', { denied: 0.04 }), app('reports', { denied: 2 })]);
    const ofMinute = (name: string, deniedInMinute: number) => {
      return { ...seriesState(name, 100, 2), deniedInMinute };
    };
    const state = quietFleet({
      ...{ quota, deniedKeys: [key(), key({ key: 'beef', denied: 300 })] },
      // Search is turned away no longer: it stays as long as its denials are of the last minute.
      series: [ofMinute('app:search', 900), ofMinute('app:reports', 120)],
    });
    expect(limitedOf(state, () => LOGIN)).toMatchObject([
      { kind: 'app', who: 'search', denied: 900, why: 'until a moment ago' },
      { kind: 'key', who: 'beef', policy: 'login', denied: 300 },
      { kind: 'app', who: 'reports', policy: undefined, denied: 120 },
      { kind: 'key', who: '1a2b3c4d', policy: 'login', denied: 30 },
    ]);
  });

  it('has an app by its denials per second where nobody has told those of the minute', () => {
    const quota = quotaOf([app('search', { denied: 2.004 }), app('reports', { denied: 3 })]);
    // A leader of an older version; and one whose state had no room for the series.
    const state = quietFleet({
      ...{ quota, deniedKeys: [key({ denied: 150 })] },
      series: [...quietFleet().series, seriesState('app:search', 100, 2)],
    });
    expect(limitedOf(state, () => LOGIN)).toMatchObject([
      { who: 'reports', denied: 180 },
      { who: '1a2b3c4d', denied: 150 },
      { who: 'search', denied: 120 },
    ]);
  });

  it('knows an overload that only ceilings make: the capacity is not short', () => {
    const atCeiling = app('a', { demand: 900, used: 200, deniedByCluster: 0 });
    const cut = app('b', { deniedByCluster: 20 });
    const short = (apps: AppState[], overloaded = true) =>
      isShort(quietFleet({ quota: quotaOf(apps, overloaded) }));
    expect(short([atCeiling, app('b', { denied: 0 })])).toBe(false);
    expect(short([atCeiling, cut])).toBe(true);
    // Nobody is turned away yet, and it is close.
    expect(short([app('a', { denied: 0 })])).toBe(true);
    expect(short([cut], false)).toBe(false);
    expect(isShort(quietFleet())).toBe(false);
  });

  it.each([
    ['its ceiling', app('a', { demand: 195 }), true, 'over its ceiling of 200/s'],
    ['the cluster', app('a'), true, 'all apps together ask for 320/s of 300/s'],
    ['its guarantee', app('a'), false, 'over its guarantee of 100/s'],
    ['moments', app('a', { used: 70, demand: 90 }), false, 'in bursts over its guarantee of 100/s'],
    [
      'a rush that is over',
      app('a', { used: 180, demand: 90 }),
      false,
      'over its ceiling of 200/s',
    ],
  ])('tells an app by %s, as the verdict does', (_name, one, overloaded, clause) => {
    const state = quietFleet({
      ...{ quota: quotaOf([one], overloaded), learning: { minutes: 1, needed: 3 } },
      series: [...quietFleet().series, seriesState('app:a', 120, 20)],
    });
    expect(reasons(state)).toEqual([clause]);
    expect(verdict(state).why).toContain(clause);
  });

  it.each([
    ['the cluster, also at its ceiling', 195, 20, true, 'all apps together ask for 320/s of 300/s'],
    ['its ceiling, also in overload', 195, 0, true, 'over its ceiling of 200/s'],
    ['its guarantee, also in overload', 120, 4, true, 'over its guarantee of 100/s'],
    ['a reserve', 120, 20, false, 'the capacity of 300/s had nothing left to lend'],
  ])(
    'goes by who has denied, where that is counted: %s',
    (_name, demand, deniedByCluster, overloaded, clause) => {
      const quota = quotaOf([app('a', { demand, deniedByCluster })], overloaded);
      expect(reasons(quietFleet({ quota }))).toEqual([clause]);
    },
  );

  it('tells an overload that is over as of the past, as long as its denials are in the figures', () => {
    const since = (agoMs: number): string[] => {
      const { atMs } = quietFleet();
      const mark = { kind: 'overload', text: 'overload is over' } as const;
      const quota = { ...quotaOf([app('a', { deniedByCluster: 20 })])!, demand: 150, stock: 55 };
      return reasons(quietFleet({ quota, marks: [{ ...mark, atMs: atMs - agoMs }] }));
    };
    const over =
      'all apps together asked for about all of the capacity of 300/s, or more, until a moment ago';
    expect([since(0), since(9000)]).toEqual([[over], [over]]);
    expect(since(60_000)).toEqual(['the capacity of 300/s had nothing left to lend']);
  });

  it('tells a share while Redis is away, and no limit', () => {
    const quota = quotaOf([app('search', { modes: { offline: 1 }, demand: undefined })]);
    const series = [{ ...seriesState('app:search', 120, 20), deniedInMinute: 200 }];
    const own = alone({ quota, series, store: AWAY, deniedKeys: [key({ source: 'fallback' })] });
    expect(reasons(own)).toEqual([
      'Redis is away; this node has a share of its guarantee of 100/s',
      'Redis is away; this node has a share of the limit of 5/min',
    ]);
    const fleet = quietFleet({ store: { ...UP, awayNodes: 1 }, deniedKeys: own.deniedKeys });
    expect(reasons(fleet)).toEqual(['Redis is away; each node has a share of the limit of 5/min']);
    expect(reasons({ ...own, quota: undefined }, { ...LOGIN, failureMode: 'closed' })).toEqual([
      'Redis is away, and without it the policy lets nobody pass',
    ]);
  });

  it('goes by the failure mode of the node that denied, and claims no share where no mode is known', () => {
    const by = (failureMode: ShownKey['failureMode'], store = AWAY): string[] =>
      reasons(alone({ store, deniedKeys: [key({ source: 'fallback', failureMode })] }), null);
    expect(by('closed')).toEqual(['Redis is away, and without it the policy lets nobody pass']);
    expect(by('local')).toEqual(['Redis is away; this node has a share of the limit']);
    expect(by(undefined)).toEqual(['Redis is away; this node decides by itself']);
    expect(by(undefined, UP)).toEqual(['Redis was away; this node decided by itself']);
    const changed = [key({ source: 'fallback', failureMode: 'closed' })];
    expect(reasons(alone({ store: AWAY, deniedKeys: changed }))).toEqual(by('closed'));
  });

  it('tells of a share that is over as of the past', () => {
    const state = alone({ store: UP, deniedKeys: [key({ source: 'fallback' })] });
    expect(reasons(state)).toEqual(['Redis was away; this node had a share of the limit of 5/min']);
    expect(reasons(state, { ...LOGIN, failureMode: 'closed' })).toEqual([
      'Redis was away, and without it the policy lets nobody pass',
    ]);
  });

  it('tells keys of the store, of this process and of older versions by their limit, also while Redis is away', () => {
    for (const source of ['store', 'local', undefined] as const) {
      expect(reasons(alone({ store: AWAY, deniedKeys: [key({ source })] }))).toEqual([
        'more than 5/min by this key',
      ]);
    }
  });
});
