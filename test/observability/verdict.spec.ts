import { type Alert } from '../../lib/observability/alerts/alert.js';
import { type AppState, type FleetState, type QuotaState } from '../../lib/observability/state.js';
import { figure, limitText, percent } from '../../lib/observability/figures.js';
import { verdict } from '../../lib/observability/verdict.js';
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
const alert = (rule: string, series: string, more: Partial<Alert> = {}): Alert => ({
  ...{ rule, series, state: 'firing', severity: 'warning', muted: false, value: 2, threshold: 1 },
  ...{ text: `${series}: it is so`, sinceMs: 0, fingerprint: '', nodeId: 'a', cluster: 'shop' },
  ...more,
});
const node = (name: string, isSilent = false, ...open: string[]): FleetState['nodes'][number] => ({
  ...{ node: name, rate: 1, denied: 0, revision: 42, storeIsUp: true, isSilent },
  ...(open.length > 0 && { open }),
});
type Resource = FleetState['resources'][number];
const resource = (name: string, more: Partial<Resource>): Resource => ({
  ...{ resource: name, breaker: undefined, openNodes: 0, phase: undefined, percent: 100 },
  ...more,
});
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
      'alerts',
      '2 alerts fire: Answers get slower (search), Traffic rises (all requests).',
      'it is so; now 12 nodes decide 46k/s, 0.2 % denied',
      {
        alerts: [
          alert('qpsRise', 'total', { severity: 'info' }),
          alert('p99Rise', 'app:search'),
          alert('peak', 'total', { muted: true }),
          alert('line', 'total', { state: 'pending' }),
          alert('errorRate', 'total', { value: 0.5 }),
        ],
      },
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
      'recovery',
      'Catalog-db is on its way back: 10 % of its requests reach it.',
      undefined,
      {
        resources: [
          resource('stock', { phase: 'normal' }),
          resource('prices', { phase: 'disabled' }),
          resource('catalog-db', { phase: 'ramp', percent: 10 }),
        ],
      },
    ],
    [
      'breaker',
      'The breaker of db is open on 2 of 12 nodes (api-1 and 1 more).',
      undefined,
      {
        nodes: [node('api-1', false, 'db'), node('api-3', true), node('api-4', true)],
        resources: [
          resource('db', { breaker: 'open', openNodes: 2 }),
          resource('page', { phase: 'degraded', percent: 0 }),
        ],
      },
    ],
    [
      'degraded',
      'Product gives simplified answers: 3/s.',
      'the breaker of db is open on 2 of 12 nodes (api-1 and 1 more); product answers 3/s simplified (level 3)',
      { series: low, learning: undefined },
    ],
    [
      'denials',
      'Search is limited: 1 in 5 turned away.',
      'over its guarantee of 8,000/s',
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
      'Overload: 104 % of capacity asked for. Search loses most: 1 in 5 turned away.',
      'all apps together ask for 52k/s of 50k/s; search asks for 11.1k/s and is sure of 8,000/s, beyond which it gets what others leave; catalog loses 140/s',
      { quota },
    ],
    [
      'store',
      'Redis is away: 11 nodes decide by themselves.',
      "callers are answered by a share of each limit, or as a policy's failureMode says, until Redis answers again",
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

  it('is about denials only while there are more than usual: an alert about them lasts longer', () => {
    const of = (denied: number) => [seriesState('total', 100, 0), seriesState('app:search', 90, denied)]; // oxfmt-ignore
    const alerts = [alert('denialRise', 'app:search', { value: 0.4, threshold: 0.05 })];
    expect(verdict(quietFleet({ series: of(30), alerts })).kind).toBe('denials');
    expect(verdict(quietFleet({ series: of(0.3), alerts }))).toMatchObject({
      level: 'info',
      text: 'Calm again. An alert still fires for the minutes before: Denials rise (search).',
      series: 'app:search',
    });
    const ending = [{ ...alerts[0]!, value: 0.04 }];
    expect(verdict(quietFleet({ series: of(30), alerts: ending })).kind).toBe('alerts');
  });

  it('names the app that is turned away before other alerts, until one about denials fires', () => {
    const alerts = [alert('qpsRise', 'app:search'), alert('degraded.level1', 'resource:page')];
    const of = (denied: number) => [seriesState('total', 200, denied), seriesState('app:search', 150, denied)]; // oxfmt-ignore
    expect(verdict(quietFleet({ series: of(90), alerts }))).toMatchObject({
      ...{ kind: 'denials', level: 'warning', series: 'app:search' },
      text: 'Search is limited: 60 % turned away.',
    });
    expect(verdict(quietFleet({ series: of(3), alerts })).kind).toBe('alerts');
    // What is usual is no news where nothing fires.
    expect(verdict(quietFleet({ series: of(90) })).kind).toBe('quiet');
  });

  it('is calm again where all that fire are of the minutes before, whatever their severity', () => {
    const page = seriesState('resource:page', 30, 0);
    const series = [seriesState('total', 100, 0), page];
    const [errors, levels] = [
      alert('errorRate', 'resource:page', { severity: 'critical' }),
      alert('degraded.level1', 'resource:page'),
    ];
    const alerts = [errors, levels];
    expect(verdict(quietFleet({ series, alerts }))).toMatchObject({
      level: 'info',
      text: 'Calm again. 2 alerts still fire for the minutes before: Errors (page), Degraded answers, level 1 (page).',
    });
    const failing = [series[0]!, { ...page, errors: 3 }];
    expect(verdict(quietFleet({ series: failing, alerts }))).toMatchObject({
      level: 'bad',
      text: expect.stringMatching(/^2 alerts fire: Errors \(page\)/) as string,
    });
    const degraded: [number, number, number, number] = [2, 0, 0, 0];
    const answering = [series[0]!, { ...page, degraded }];
    expect(verdict(quietFleet({ series: answering, alerts })).text).toMatch(/^2 alerts fire:/);
    // Of what is not known now nobody can say that it is over.
    expect(verdict(quietFleet({ series: [series[0]!], alerts })).text).toMatch(/^2 alerts fire:/);
    const slow = [alert('p99Rise', 'total'), errors];
    expect(verdict(quietFleet({ series, alerts: slow })).text).toMatch(/^2 alerts fire:/);
  });

  it('is not quiet while an alert fires, and says which end if it stays so', () => {
    const over = { value: 0.5 };
    const [falling, held] = [alert('degraded.level2', 'resource:page', over), alert('breakerOpen', 'resource:db', { value: 0 })]; // oxfmt-ignore
    expect(verdict(quietFleet({ alerts: [falling] }))).toMatchObject({
      ...{ kind: 'alerts', level: 'info' },
      text: 'Calm again. An alert ends if it stays so: "Degraded answers, level 2" (page).',
    });
    expect(verdict(quietFleet({ alerts: [falling, held] })).text).toBe(
      'Calm again. 2 alerts end if it stays so: "Breaker is open" (db), "Degraded answers, level 2" (page).',
    );
    const levels = (['info', 'warning', 'critical'] as const).map((severity) => {
      return verdict(quietFleet({ alerts: [alert('peak', 'total', { severity })] })).level;
    });
    expect(levels).toEqual(['info', 'warning', 'bad']);
    const many = ['qpsRise', 'errorRate', 'p99Rise', 'line', 'peak'].map((rule) =>
      alert(rule, 'total'),
    );
    expect(verdict(quietFleet({ alerts: many })).text).toBe(
      '5 alerts fire: Requests stand in line, Traffic rises (all requests), Errors (all requests), Answers get slower (all requests) and 1 more.',
    );
    const alike = ['total', 'app:checkout', 'app:search'].map((series) => alert('peak', series));
    expect(verdict(quietFleet({ alerts: [...alike, alert('errorRate', 'total')] })).text).toBe(
      '4 alerts fire: Peak near the limit (all requests, checkout, search), Errors (all requests).',
    );
  });

  it('says how far each resource is from normal, the worst first', () => {
    const of = (...phases: Resource['phase'][]) =>
      verdict(
        quietFleet({
          resources: phases.map((phase, index) => resource(`r${index}`, { phase, percent: 30 })),
        }),
      );
    expect(of('normal', 'disabled', undefined).kind).toBe('quiet');
    expect(of('ramp', 'degraded', 'forced')).toMatchObject({
      ...{ level: 'warning', series: 'resource:r1' },
      text: 'R1 is degraded: its requests get fallbacks; 2 more are not normal.',
    });
    expect(of('probing').text).toBe('R0 is degraded, and asked whether it is back.');
    expect(of('forced')).toMatchObject({
      ...{ level: 'info', text: 'R0 is held degraded by an operator.' },
    });
    expect(of('ramp').level).toBe('info');
  });

  it('names the nodes whose breaker is open, as many as there is room for', () => {
    const of = (
      open: readonly string[],
      nodeCount = 3,
      openNodes = open.length,
      breaker: 'open' | 'half-open' = 'open',
    ) =>
      verdict(
        quietFleet({
          nodes: ['e', 'd', 'c', 'b', 'a'].map((name) =>
            open.includes(name) ? node(name, false, 'cache', 'db') : node(name),
          ),
          ...{ nodeCount, resources: [resource('db', { breaker, openNodes })] },
        }),
      ).text;
    expect([of(['b']), of(['a', 'c']), of(['a', 'b', 'c'])]).toEqual([
      'The breaker of db is open on 1 of 3 nodes (b).',
      'The breaker of db is open on 2 of 3 nodes (a, c).',
      'The breaker of db is open on all 3 nodes.',
    ]);
    expect(of(['a', 'b', 'c', 'd'], 9)).toBe(
      'The breaker of db is open on 4 of 9 nodes (a, b, c and 1 more).',
    );
    expect(of(['a'], 1)).toBe('The breaker of db is open.');
    // All of them try again: that is not closed yet.
    expect(of(['a', 'c'], 3, 2, 'half-open')).toBe(of(['a', 'c']));
    // Older versions do not say on which.
    expect(of([], 9, 2)).toBe('The breaker of db is open on 2 of 9 nodes.');
  });

  it('says what callers get in the place of a resource, and how many', () => {
    const open = [resource('db', { breaker: 'open', openNodes: 1 })];
    const of = (more: Partial<FleetState>) => verdict(quietFleet({ nodeCount: 1, ...more })).why;
    const page = seriesState('resource:page', 30, 0, [24, 2.5, 0, 0]);
    const list = seriesState('resource:list', 30, 0, [0, 0, 0, 1]);
    expect(of({ resources: open, series: [page] })).toBe(
      'page answers 24/s from the shared cache (level 1), 2.5/s from the cache of the process (level 2)',
    );
    expect(of({ resources: open, series: [seriesState('resource:db', 30, 28)] })).toBe(
      '28/s of its calls are refused at once',
    );
    expect(of({ resources: open })).toBeUndefined();
    expect(of({ resources: [resource('page', { phase: 'degraded' })], series: [page] })).toMatch(
      /^page answers 24\/s from the shared cache/,
    );
    const many = [list, page, seriesState('resource:cart', 9, 0, [0.5, 0, 0, 0])];
    expect(of({ resources: open, series: many })).toMatch(
      /^the breaker of db is open; page answers .*; list answers 1\/s by default \(level 4\); 1 more gives such answers$/,
    );
  });

  it('has words for one node, nothing to do, and an overload that hurts nobody yet', () => {
    const idle = { nodeCount: 1, series: [seriesState('total', 0, 0), seriesState('store', 0, 0)] };
    expect(verdict(quietFleet(idle)).text).toBe('All quiet: 1 node has nothing to decide.');
    const nobody = { quota: { ...quota, apps: [{ ...search, denied: 0 }] } };
    expect(verdict(quietFleet(nobody))).toMatchObject({
      ...{ kind: 'overload', level: 'warning', why: undefined },
      text: 'All apps together ask for 104 % of the capacity; nobody is turned away now.',
    });
    // What callers feel comes before it.
    const open = [resource('db', { breaker: 'open', openNodes: 1 })];
    expect(verdict(quietFleet({ ...nobody, resources: open })).kind).toBe('breaker');
    const greedy = { quota: { ...quota, apps: [{ ...search, demand: 20_000 }] } };
    expect(verdict(quietFleet({ ...greedy, series: SERIES }))).toMatchObject({
      ...{ kind: 'denials', level: 'warning', text: 'Search is limited: 1 in 5 turned away.' },
      why: 'search asks for 20k/s, over its ceiling of 16k/s; no other app is turned away',
    });
    const one = { store: { isUp: true, awayNodes: 1, sinceMs: undefined } };
    expect(verdict(quietFleet(one))).toMatchObject({
      level: 'warning',
      text: 'Redis is away: 1 node of 12 decides by itself.',
      why: "callers are answered by a share of each limit, or as a policy's failureMode says, until Redis answers again",
    });
    const own = { store: { isUp: false, awayNodes: 1, sinceMs: undefined } };
    expect(verdict(quietFleet(own)).text).toBe(
      'Redis is away: this node decides by itself, as does each that does not reach it.',
    );
  });

  it('says since when that is so, wherever it is known', () => {
    const marks = [
      { atMs: 0, kind: 'overload', text: 'overload begins' },
      { atMs: 60_000, kind: 'overload', text: 'overload is over' },
      { atMs: 3_720_000, kind: 'overload', text: 'overload begins' },
      { atMs: 3_780_000, kind: 'breaker', text: 'breaker of db opens on a' },
      { atMs: 3_840_000, kind: 'breaker', text: 'breaker of dbs opens' },
    ] as const;
    const of = (more: Partial<FleetState>) => {
      const found = verdict(quietFleet({ marks, ...more }));
      return [found.kind, found.sinceMs];
    };
    expect(of({ quota, series: SERIES })).toEqual(['overload', 3_720_000]);
    expect(of({ quota, series: SERIES, marks: [] })).toEqual(['overload', undefined]);
    const atMs = 7_200_000;
    const limited = [{ ...seriesState('app:search', 100, 50), deniedForMs: 65_000 }];
    expect(of({ atMs, learning, series: limited })).toEqual(['denials', 7_135_000]);
    const greedy = { ...quota, apps: [{ ...search, demand: 20_000 }] };
    expect(of({ atMs, quota: greedy, series: limited })).toEqual(['denials', 7_135_000]);
    const low = { ...seriesState('resource:page', 9, 0, [0, 0, 1, 0]), degradedForMs: 5000 };
    expect(of({ atMs, series: [low] })).toEqual(['degraded', 7_195_000]);
    const degraded = [resource('page', { phase: 'degraded', percent: 0 })];
    const cached = { ...low, degraded: [1, 0, 0, 0] as const };
    expect(of({ atMs, resources: degraded, series: [cached] })).toEqual(['recovery', 7_195_000]);
    // A ramp has begun later than that.
    const ramp = [resource('page', { phase: 'ramp', percent: 10 })];
    expect(of({ atMs, resources: ramp, series: [cached] })).toEqual(['recovery', undefined]);
    const open = [resource('db', { breaker: 'open', openNodes: 1 })];
    expect(of({ resources: open })).toEqual(['breaker', 3_780_000]);
    const away = { store: { isUp: false, awayNodes: 12, sinceMs: 120_000 } };
    expect(of(away)).toEqual(['store', 120_000]);
    expect(of({})).toEqual(['quiet', undefined]);
  });

  it('does not say so of one that began unseen after another that is over', () => {
    const marks = [
      { atMs: 1, kind: 'overload', text: 'overload begins' },
      { atMs: 2, kind: 'overload', text: 'overload is over' },
      { atMs: 3, kind: 'breaker', text: 'breaker of db opens on a' },
      { atMs: 4, kind: 'breaker', text: 'breaker of db is closed' },
      { atMs: 5, kind: 'breaker', text: 'breaker of cart opens' },
      { atMs: 6, kind: 'revision', text: 'configuration 43' },
    ] as const;
    const of = (more: Partial<FleetState>) => verdict(quietFleet({ marks, ...more })).sinceMs;
    const open = (name: string) => [resource(name, { breaker: 'open', openNodes: 1 })];
    expect(of({ quota, series: SERIES })).toBeUndefined();
    expect(of({ resources: open('db') })).toBeUndefined();
    expect(of({ resources: open('cart') })).toBe(5);
  });

  it('says of an overload which apps lose, the one that loses most with its cause', () => {
    const app = (name: string, denied: number, more: Partial<AppState> = {}): AppState => ({
      ...{ ...search, app: name, guaranteed: 100, burst: 200, used: 120, denied },
      ...{ demand: 120 + denied, ...more },
    });
    const of = (apps: AppState[], more: Partial<QuotaState> = {}) =>
      verdict(quietFleet({ quota: { ...quota, capacity: 500, demand: 780, ...more, apps } }));
    const many = ['a', 'b', 'c', 'd', 'e'].map((name, index) => app(name, 20 + index));
    expect(of(many)).toMatchObject({
      text: 'Overload: 156 % of capacity asked for. E loses most: 24/s turned away.',
      why: 'all apps together ask for 780/s of 500/s; e asks for 144/s and is sure of 100/s, beyond which it gets what others leave; d loses 23/s, c 22/s and 2 more apps lose',
      series: 'app:e',
    });
    // The store counts demand late; less than what was turned away it is not.
    expect(of([app('a', 60, { demand: 90 })]).why).toMatch(/; a asks for 180\/s and is sure/);
    expect(of([app('a', 60)], { demand: undefined }).text).toMatch(
      /^Overload: about all of the capacity or more asked for. A loses most/,
    );
    const own = app('a', 60, { used: 60, demand: 120, deniedByCluster: 0, burst: 900 });
    expect(of([own]).why).toBe(
      'a asks for 120/s, over its guarantee of 100/s; no other app is turned away',
    );
    expect(of([own, app('b', 20)])).toMatchObject({
      text: 'Overload: 156 % of capacity asked for. A loses most: 60/s turned away.',
      why: 'all apps together ask for 780/s of 500/s; a asks for 120/s, over its guarantee of 100/s; b loses 20/s',
    });
  });

  it('has a part in words only where they say as much as the figure', () => {
    const of = (denied: number) =>
      verdict(quietFleet({ learning, series: [seriesState('policy:login', 100, denied)] })).text;
    expect([7, 20, 50, 62, 96].map(of).map((text) => text.slice(25))).toEqual([
      ...['1 in 14 turned away.', '1 in 5 turned away.', '1 in 2 turned away.'],
      ...['62 % turned away.', 'nearly all turned away.'],
    ]);
  });

  it('shows names as text, whatever is in them', () => {
    const nodes = [node('\u001b[2J\u202eevil\n', true)];
    expect(verdict(quietFleet({ nodes })).text).toBe('Node ·[2J·evil· is silent, and did not say goodbye.'); // oxfmt-ignore
  });

  it('has short figures', () => {
    expect([0, 1.25, 42, 2316, 9999, 48_600, 123_456, 2_500_000].map((one) => figure(one))).toEqual(
      [...['0', '1.3', '42', '2,316', '9,999', '48.6k', '123k', '2.5M']],
    );
    expect([0, 0.0001, 0.002, 0.056, 1.04].map((one) => percent(one))).toEqual([
      ...['0 %', '0.01 %', '0.2 %', '5.6 %', '104 %'],
    ]);
    expect(percent(0.000_01)).toBe('< 0.01 %');
    const limits = [[5, 60_000], [50, 1000], [20, 10_000], [2, 200], [5, 90_000], [9, 7_200_000]]; // oxfmt-ignore
    expect(limits.map(([capacity, windowMs]) => limitText(capacity!, windowMs!))).toEqual([
      ...['5/min', '50/s', '20 in 10 s', '10/s', '5 in 90 s', '9 in 2 h'],
    ]);
  });
});
