import { type Alert } from '../../lib/observability/alerts/alert.js';
import { type AppState, type FleetState, type QuotaState } from '../../lib/observability/state.js';
import { figure, percent, verdict, why } from '../../lib/observability/verdict.js';
import { quietFleet, seriesState } from './snapshots.js';

const search: AppState = {
  ...{ app: 'search', guaranteed: 8000, burst: 16_000, priority: 2, used: 8900, denied: 2200 },
  ...{ demand: 11_000, outstanding: 300, nodes: 3, modes: {} },
};
const quota: QuotaState = {
  ...{ capacity: 50_000, demand: 52_000, stock: 10, depth: 10_000, outstanding: 1240 },
  ...{ overloaded: true, apps: [{ ...search, app: 'catalog', denied: 140 }, search] },
};
const SERIES = [
  ...quietFleet().series,
  seriesState('app:search', 11_000, 2200),
  seriesState('app:catalog', 14_000, 140),
  seriesState('policy:login', 100, 50),
];
const rise = (series: string): Alert => ({ rule: 'denialRise', series, state: 'firing' }) as Alert;
const node = (name: string, isSilent = false): FleetState['nodes'][number] => ({
  ...{ node: name, rate: 1, denied: 0, revision: 42, storeIsUp: true, isSilent },
});
const resource = { resource: 'db', breaker: 'open', openNodes: 2, phase: undefined, percent: 10 };
const learning = { minutes: 1, needed: 3 };
const low = [...SERIES, seriesState('resource:product', 50, 0, [0, 0, 3, 0])];

/** Each with all that comes after it: the first that holds is told. */
const ROWS: readonly [kind: string, text: string, why: string | undefined, Partial<FleetState>][] =
  [
    ['quiet', 'All quiet: 12 nodes decide 46k/s, 0.2 % denied.', undefined, {}],
    [
      'learning',
      'Learning what is usual (1 of 3 min): 12 nodes decide 46k/s, 0.2 % denied.',
      undefined,
      { learning },
    ],
    [
      'behind',
      '2 of 12 nodes are not on revision 42 yet.',
      undefined,
      { config: { revision: 42, behind: 2 } },
    ],
    [
      'silent',
      'Node api-3 and 1 more are silent, and did not say goodbye.',
      undefined,
      { nodes: [node('api-1'), node('api-3', true), node('api-4', true)] },
    ],
    [
      'breaker',
      'The breaker of db is open on 2 of 12 nodes.',
      undefined,
      { resources: [resource as FleetState['resources'][number]] },
    ],
    [
      'degraded',
      'Product gives simplified answers: 3/s.',
      undefined,
      { series: low, learning: undefined },
    ],
    [
      'denials',
      'Search is limited: 1 in 5 turned away.',
      'search is over its guarantee of 8,000/s',
      {
        series: low,
        quota: { ...quota, overloaded: false },
        alerts: [rise('total'), rise('app:search'), rise('policy:login')],
      },
    ],
    [
      'line',
      'Requests stand in line before the application: 40 wait.',
      'the event loop has had no rest; the highest tiers go first',
      { line: { standing: true, waiting: 40 } },
    ],
    [
      'overload',
      'Search is limited: 1 in 5 turned away; 104 % of the capacity asked for.',
      'all apps together ask for 52k/s of 50k/s',
      { quota },
    ],
    [
      'store',
      'Redis is away: 11 nodes decide by themselves since 14:02 UTC.',
      'each has its share of the limits, until Redis answers again',
      { store: { isUp: false, awayNodes: 11, sinceMs: Date.UTC(2026, 10, 17, 14, 2) } },
    ],
  ];

describe('the verdict', () => {
  it.each(ROWS.map((row, index) => [row[0], row[1], row[2], index] as const))(
    'is %s: %s',
    (kind, text, reason, index) => {
      const more = Object.assign({}, ...ROWS.slice(0, index + 1).map((row) => row[3])) as object;
      expect(verdict(quietFleet(more))).toMatchObject({ kind, text, why: reason });
    },
  );

  it('tells of denials by what is many, as long as it is not known what is usual', () => {
    const series = [...quietFleet().series, seriesState('policy:login', 100, 50)];
    expect(verdict(quietFleet({ series })).kind).toBe('quiet');
    expect(verdict(quietFleet({ series, learning }))).toMatchObject({
      text: 'Policy login is limited: 1 in 2 turned away.',
      series: 'policy:login',
    });
  });

  it('has words for one node, nothing to do, and an overload that hurts nobody yet', () => {
    const idle = { nodeCount: 1, series: [seriesState('total', 0, 0), seriesState('store', 0, 0)] };
    expect(verdict(quietFleet(idle)).text).toBe('All quiet: 1 node has nothing to decide.');
    const nobody = { quota: { ...quota, apps: [{ ...search, denied: 0 }] } };
    expect(verdict(quietFleet(nobody))).toMatchObject({ kind: 'overload', level: 'warning' });
    const one = { store: { isUp: true, awayNodes: 1, sinceMs: undefined } };
    expect(verdict(quietFleet(one))).toMatchObject({
      level: 'warning',
      text: 'Redis is away: 1 node of 12 decides by itself.',
    });
  });

  it('shows names as text, whatever is in them', () => {
    const nodes = [node('\u001b[2J\u202eevil\n', true)];
    expect(verdict(quietFleet({ nodes })).text).toBe('Node ·[2J·evil· is silent, and did not say goodbye.'); // oxfmt-ignore
  });

  it('says why in one clause, by the tier that decided', () => {
    expect([
      why({ tier: 'cluster', demand: undefined, capacity: 50_000 }),
      why({ tier: 'app', app: 'search', of: 'ceiling', limit: 16_000 }),
      why({ tier: 'policy', limit: 5, windowMs: 60_000 }),
      why({ tier: 'policy', limit: 5, windowMs: 90_000 }),
      why({ tier: 'fallback', share: 7.5 }),
      why({ tier: 'fallback', share: undefined }),
    ]).toEqual([
      'all apps together ask for more than the capacity of 50k/s',
      'search is over its ceiling of 16k/s',
      'more than 5 a minute by this key',
      'more than 5 in 90 s by this key',
      'Redis is away; this node has a share of 7.5/s',
      'Redis is away; this node has a share of the limit',
    ]);
  });

  it('has short figures', () => {
    expect([0, 1.25, 42, 2316, 9999, 48_600, 123_456, 2_500_000].map(figure)).toEqual([
      ...['0', '1.3', '42', '2,316', '9,999', '48.6k', '123k', '2.5M'],
    ]);
    expect([0, 0.0001, 0.002, 0.056, 1.04].map(percent)).toEqual([
      ...['0 %', '< 0.1 %', '0.2 %', '5.6 %', '104 %'],
    ]);
  });
});
