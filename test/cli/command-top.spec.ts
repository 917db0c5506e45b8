import { EventEmitter } from 'node:events';
import { Fleet } from '../../lib/observability/fleet/fleet.js';
import { StoreUnavailableError } from '../../lib/common/errors.js';
import { terminalOf, type TerminalProcess } from '../../lib/cli/terminal.js';
import { overloadText } from '../../lib/cli/status.js';
import { Top, writeLines } from '../../lib/cli/top.js';
import { topFrame, topText, VIEWS, type TopState } from '../../lib/cli/top-frame.js';
import { type FleetState, type ShownKey } from '../../lib/observability/state.js';
import { verdict } from '../../lib/observability/verdict.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { RedisBoard } from '../../lib/stores/redis/redis-board.js';
import { ManualClock, settle } from '../support/manual-clock.js';
import { until } from '../support/index.js';
import {
  nothingElse,
  quietFleet,
  series,
  seriesState,
  snapshot,
} from '../observability/snapshots.js';
import { commandStand } from './weir-command.js';

const ESC = '\u001b';

const FLEET: FleetState = quietFleet({
  cluster: 'shop-prod',
  config: { revision: 42, behind: 1 },
  store: { isUp: true, awayNodes: 0, sinceMs: undefined },
  quota: {
    ...{ capacity: 50_000, demand: 52_000, stock: 1000, depth: 10_000, outstanding: 1240 },
    overloaded: true,
    apps: [
      {
        ...{ app: 'catalog', guaranteed: 12_000, burst: 24_000, priority: 1, used: 14_100 },
        ...{ denied: 140, demand: 14_200, outstanding: 300, nodes: 3, modes: {} },
      },
      {
        ...{ app: 'search', guaranteed: 8000, burst: 16_000, priority: 2, used: 8900 },
        ...{ denied: 2100, demand: 11_000, outstanding: 300, nodes: 3, modes: {} },
      },
    ],
  },
  series: [
    seriesState('total', 51_100, 2300, [360, 0, 0, 0]),
    { ...seriesState('store', 100, 0), p99Ms: 1.8 },
    seriesState('app:search', 11_000, 2100),
    seriesState('app:catalog', 14_100, 140),
    seriesState('policy:login', 100, 20),
    seriesState(`policy:${ESC}[2J${ESC}]0;evil\u0007\n`, 5, 5),
    seriesState('resource:db', 40, 0, [0, 2, 0, 0]),
  ],
  resources: [{ resource: 'db', breaker: 'open', openNodes: 1, phase: 'ramp', percent: 30 }],
  nodes: [
    { node: 'api-1', rate: 400, denied: 3, revision: 42, storeIsUp: true, isSilent: false },
    { node: 'api-2', rate: 0, denied: 0, revision: 41, storeIsUp: false, isSilent: true },
  ],
  deniedKeys: [{ policy: 'login', key: '1a2b3c4d', denied: 900 }],
  hotValues: [{ policy: 'catalog', key: '9f8e7d6c', perPeriod: 1234 }],
});

/** So many apps over their ceilings, each denied more than the one before. */
const manyLimited = (count: number): FleetState => {
  const names = Array.from({ length: count }, (_, n) => `app-${n}`);
  const apps = names.map((app, n) => ({
    ...{ app, guaranteed: 5, burst: 9, priority: 1, used: 9, denied: n + 1, demand: 20 },
    ...{ outstanding: 0, nodes: 3, modes: {}, deniedByCluster: 0 },
  }));
  return quietFleet({
    quota: { ...FLEET.quota!, overloaded: false, apps },
    series: names.map((app, n) => seriesState(`app:${app}`, 40, n + 1)),
    deniedKeys: FLEET.deniedKeys.map((one) => ({ ...one, denied: 1 })),
  });
};

const shown = (more: Partial<TopState> = {}): TopState => ({
  ...{ fleet: FLEET, rates: [1, 4, 8], ageS: 0, fault: undefined, view: 'overview' },
  ...{ sortBy: undefined, filter: '', isTyping: false, isPaused: false, showsHelp: false },
  ...more,
});

describe('the screen of weir top', () => {
  it('says what matters first and why, then the quota, the decisions, and who is limited most', () => {
    expect(topText(shown()).split('\n')).toEqual([
      'weir top  shop-prod  12 nodes, 11 on rev 42  Redis p99 1.8 ms',
      '! Overload: 104 % of capacity asked for. Search loses most: 1 in 5 turned away.',
      '  all apps together ask for 52k/s of 50k/s; search asks for 11k/s and is sure of 8,000/s, beyond which it gets what others leave; catalog loses 140/s',
      '  capacity 50k  asked 52k  stock 1,000  leased 1,240  OVERLOADED',
      '  decisions ▂▅█ 51.1k/s  denied 2,300/s  degraded 360/s  errors 0/s',
      '',
      '  APP      PRIO  PROMISED  USED/S  OF CEILING                DENIED/S▼  NODES',
      '  search      2     8,000   8,900  ██████████░░░░░░░░  56 %      2,100      3',
      '  catalog     1       12k   14.1k  ███████████░░░░░░░  59 %        140      3',
    ]);
  });

  it('says on how many nodes the revision is, as far as they tell', () => {
    const of = (config: FleetState['config']): string =>
      topText(shown({ fleet: { ...FLEET, config } }))
        .split('\n')[0]!
        .split(', ')
        .slice(1)
        .join();
    expect(of({ revision: 42, behind: 0 })).toMatch(/^all on rev 42 /);
    expect(of({ revision: 42, behind: 0, heard: 12 })).toMatch(/^all on rev 42 /);
    expect(of({ revision: 42, behind: 1, heard: 10 })).toMatch(/^9 on rev 42 /);
  });

  it('tells no overload that only ceilings make, as the page does not', () => {
    const [catalog] = FLEET.quota!.apps;
    const apps = [{ ...catalog!, demand: 40_000, deniedByCluster: 0 }];
    const greedy = { ...FLEET, quota: { ...FLEET.quota!, apps } };
    const line = topFrame(shown({ fleet: greedy }), 120, 24).find(({ text }) =>
      /capacity /.test(text),
    );
    expect(line).toMatchObject({
      style: 'plain',
      text: expect.not.stringMatching(/OVER/) as string,
    });
    const of = (overloaded: boolean, fleet: FleetState | null, id = 'shop-prod'): string =>
      overloadText(id, overloaded, fleet);
    expect(of(true, greedy)).toBe('not short, though apps ask for more than their ceilings');
    expect(of(true, FLEET)).toBe('OVERLOADED');
    expect(of(false, greedy)).toBe('not overloaded');
    // Nobody has said who is denied, or it is of another cluster.
    expect([of(true, null), of(true, greedy, 'other')]).toEqual(['OVERLOADED', 'OVERLOADED']);
  });

  it('has no second line where the first says all of it', () => {
    const quiet = quietFleet();
    expect(verdict(quiet).why).toBeUndefined();
    expect(topText(shown({ fleet: quiet })).split('\n')[2]).toMatch(/^ {2}decisions/);
  });

  it('says since when before it says why, which may be cut', () => {
    const marks = [{ atMs: 3_720_000, kind: 'overload', text: 'overload begins' }] as const;
    const lines = topText(shown({ fleet: { ...FLEET, marks } })).split('\n');
    expect(lines[2]).toMatch(/^ {2}since 1 Jan 01:02 UTC; all apps together ask for/);
  });

  it('says the day as well where that is another', () => {
    const since = (agoMs: number): string => {
      const marks = [
        { atMs: FLEET.atMs - agoMs, kind: 'overload', text: 'overload begins' },
      ] as const;
      return /since (.*?);/.exec(topText(shown({ fleet: { ...FLEET, marks } })))![1]!;
    };
    const HOUR_MS = 3_600_000;
    expect(since(5 * HOUR_MS)).toBe('03:00 UTC');
    expect(since(19 * HOUR_MS)).toBe('13:00 UTC');
    expect(since(24 * HOUR_MS)).toBe('14 Jan 08:00 UTC');
    const alert = { rule: 'overload', state: 'firing', series: 'total', text: '' } as const;
    const alerts = [5, 50].map((hours) => ({ ...alert, sinceMs: FLEET.atMs - hours * HOUR_MS }));
    const fleet = { ...FLEET, alerts: alerts as unknown as FleetState['alerts'] };
    const text = topText(shown({ fleet, view: 'alerts' }));
    expect(text).toMatch(/ {2}03:00:00$/m);
    expect(text).toMatch(/ {2}13 Jan 06:00:00$/m);
  });

  it('says why as far as the screen is wide, and on a low one leaves its line to the table', () => {
    const frame = (rows: number): string[] =>
      topFrame(shown(), 40, rows).map(({ text }) => text.trim());
    expect(frame(24)[2]).toBe('all apps together ask for 52k/s of 50…');
    expect(frame(24)[7]).toMatch(/^search /);
    expect(frame(8)[2]).toMatch(/^capacity /);
    expect(frame(8)[6]).toMatch(/^search /);
  });

  it('says which figures are not in it', () => {
    const lines = (damaged: number, otherVersions: number): string[] =>
      topText(shown({ fleet: { ...FLEET, damaged, otherVersions } })).split('\n');
    expect(lines(1, 3)[3]).toBe(
      '! figures without 3 of another version and 1 whose figures cannot be read',
    );
    expect(lines(2, 0)[3]).toBe('! figures without 2 whose figures cannot be read');
    expect(lines(0, 0).join()).not.toContain('without');
  });

  it.each(VIEWS.map((view) => [view] as const))('fits 80 × 24 and 40 × 8: %s', (view) => {
    for (const [columns, rows] of [
      [80, 24],
      [40, 8],
    ] as const) {
      const lines = topFrame(shown({ view }), columns, rows);
      expect(lines).toHaveLength(rows);
      for (const { text } of lines) {
        expect([...text].length).toBeLessThanOrEqual(columns);
        expect(text).not.toMatch(/\p{Cc}/u);
      }
    }
  });

  it('shows names with control characters as text', () => {
    const { text } = topFrame(shown({ view: 'policies' }), 80, 24).find((line) =>
      line.text.includes('evil'),
    )!;
    expect(text).toContain('·[2J·]0;evil··');
  });

  it('shows such names as text also where it says why', () => {
    const app = `${ESC}]0;evil\u0007\n\u202e`;
    const quota = { ...FLEET.quota!, apps: FLEET.quota!.apps.map((one) => ({ ...one, app })) };
    const lines = topFrame(shown({ fleet: { ...FLEET, quota } }), 200, 24);
    expect(lines[2]!.text).toContain('·]0;evil··· asks for');
    for (const { text } of lines) expect(text).not.toMatch(/[\p{Cc}\p{Cf}]/u);
  });

  it('sorts, filters and helps', () => {
    const first = (state: Partial<TopState>) => topFrame(shown(state), 80, 24)[7]!.text.trim();
    expect(first({ sortBy: 0 })).toMatch(/^catalog/);
    expect(first({ sortBy: 3 })).toMatch(/^catalog/);
    expect(first({ filter: 'SEAR' })).toMatch(/^search/);
    expect(first({ filter: 'none' })).toBe('');
    expect(topFrame(shown({ showsHelp: true }), 80, 24)[2]!.text).toBe('  1  overview');
  });

  it('names the nodes whose breaker is open', () => {
    const [one] = FLEET.nodes;
    const nodes = [{ ...one!, node: 'api-7', isSilent: false, open: ['db', 'cache'] }];
    const text = topText(shown({ view: 'nodes', fleet: { ...FLEET, nodes } }));
    expect(text).toMatch(/api-7 .* breaker open: db, cache$/m);
  });

  it('says why keys are denied as the page does: by their limit, or by a share while Redis is away', () => {
    const rowOf = (
      source: ShownKey['source'],
      awayNodes: number,
      failureMode?: ShownKey['failureMode'],
    ): string => {
      const deniedKeys = [{ ...FLEET.deniedKeys[0]!, source, failureMode }];
      const store = { ...FLEET.store!, awayNodes };
      const text = topText(shown({ view: 'alerts', fleet: { ...FLEET, deniedKeys, store } }));
      return text.split('\n').find((line) => line.includes('1a2b3c4d'))!;
    };
    expect(rowOf('store', 0)).toMatch(
      /login +900 in 1 min +more than its policy allows by this key$/,
    );
    expect(rowOf('fallback', 1, 'local')).toMatch(/away; each node has a share of the limit$/);
    expect(rowOf('fallback', 0, 'local')).toMatch(/was away; each node had a share of the limit$/);
    expect(rowOf('fallback', 1, 'closed')).toMatch(/without it the policy lets nobody pass$/);
    expect(rowOf('fallback', 1)).toMatch(/Redis is away; each node decides by itself$/);
  });

  it('says that figures are old, or are not there', () => {
    const old = topText(shown({ ageS: 12, fault: 'connection refused' }));
    expect(old).toContain('! last heard 12 s ago: connection refused');
    expect(topText(shown({ fleet: undefined }))).toContain('Waiting: no process has written');
  });
});

/** A process with a terminal, of which everything can be seen. */
function fakeProcess({ env = {}, isTTY = true } = {}) {
  const stdin = Object.assign(new EventEmitter(), {
    ...{ isTTY, isRaw: false, setRawMode: (isRaw: boolean) => (stdin.isRaw = isRaw) },
    ...{ resume: () => {}, pause: () => {} },
  }) as EventEmitter & { isRaw: boolean } & TerminalProcess['stdin'];
  const writes: string[] = [];
  const stdout = Object.assign(new EventEmitter(), {
    ...{ isTTY, columns: 80, rows: 24, write: (text: string) => writes.push(text) },
  });
  const all = Object.assign(new EventEmitter(), { stdin, stdout, env });
  return { process: all as unknown as TerminalProcess & EventEmitter, stdin, stdout, writes };
}

function started(env: Record<string, string> = {}) {
  const fake = fakeProcess({ env });
  const clock = new ManualClock();
  const seen = {
    fleet: FLEET as FleetState | 'damaged' | undefined,
    fault: undefined as Error | undefined,
  };
  const read = () =>
    seen.fault === undefined ? Promise.resolve(seen.fleet) : Promise.reject(seen.fault);
  const ended = new Top(read, terminalOf(fake.process), clock).run();
  const type = (...keys: string[]): void => {
    for (const key of keys) fake.stdin.emit('data', Buffer.from(key));
  };
  const second = async (): Promise<void> => {
    clock.advance(1000);
    await settle();
  };
  return { ...fake, clock, seen, ended, type, second };
}

describe('weir top on a terminal', () => {
  const isRestored = ({ writes, stdin }: ReturnType<typeof started>): boolean =>
    writes.at(-1) === `${ESC}[?25h${ESC}[?1049l` && !stdin.isRaw;

  it('draws a frame in one write, and then only the lines that have changed', async () => {
    const top = started();
    await settle();
    expect(top.writes[0]).toContain(`${ESC}[?1049h`);
    expect(top.writes).toHaveLength(2);
    expect(top.writes[1]).toContain('Search loses most');
    await top.second();
    expect(top.writes).toHaveLength(2);
    const total = seriesState('total', 60_000, 2300);
    top.seen.fleet = {
      ...FLEET,
      atMs: FLEET.atMs + 1000,
      series: [total, ...FLEET.series.slice(1)],
    };
    await top.second();
    expect(top.writes).toHaveLength(3);
    expect(top.writes[2]).toContain('60k/s');
    expect(top.writes[2]).not.toContain('Search loses most');
    top.type('q');
    expect(await top.ended).toBe(0);
    expect(isRestored(top)).toBe(true);
    expect(top.clock.pending).toBe(0);
  });

  it.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])('gives the screen back at %s', async (signal, code) => {
    const top = started();
    await settle();
    top.process.emit(signal);
    expect(await top.ended).toBe(code);
    expect(isRestored(top)).toBe(true);
    expect(top.process.listenerCount('exit') + top.process.listenerCount(signal)).toBe(0);
  });

  it('gives it back at Ctrl-C, and when the process crashes', async () => {
    const interrupted = started();
    await settle();
    interrupted.type('\u0003');
    expect(await interrupted.ended).toBe(130);
    expect(isRestored(interrupted)).toBe(true);
    const crashed = started();
    await settle();
    crashed.process.emit('exit');
    expect(isRestored(crashed)).toBe(true);
    crashed.type('q');
  });

  it('obeys its keys', async () => {
    const top = started();
    await settle();
    const last = () => top.writes.at(-1)!;
    top.type('5');
    expect(last()).toContain('api-2');
    top.type('/', 'a', 'p', 'i', '-', '1');
    expect(last()).toContain('/api-1');
    top.type('\r');
    expect(last()).toContain("filter 'api-1'");
    top.type(ESC, 'p');
    expect(last()).toContain('PAUSED');
    const { length } = top.writes;
    top.seen.fleet = { ...FLEET, atMs: FLEET.atMs + 9000, nodeCount: 99 };
    await top.second();
    expect(top.writes).toHaveLength(length);
    top.type('p', '?');
    expect(last()).toContain('this page');
    top.type('?');
    await top.second();
    expect(top.writes.join('')).toContain('99 nodes');
    top.type('q');
    await top.ended;
  });

  it('keeps the last figures while Redis is away, and tells how old they are', async () => {
    const top = started();
    await settle();
    top.seen.fault = new StoreUnavailableError('no answer');
    for (let second = 0; second < 12; second++) await top.second();
    expect(top.writes.at(-1)).toMatch(/last heard 1[0-9] s ago: .*no answer/);
    top.type('q');
    await top.ended;
  });

  it('keeps the last figures as well while those that are there cannot be read, and says so', async () => {
    const top = started();
    await settle();
    top.seen.fleet = 'damaged';
    for (let second = 0; second < 2; second++) await top.second();
    expect(top.writes.join('')).toMatch(
      /last heard \d s ago: the figures that are there are damaged/,
    );
    expect(top.writes[1]).toContain('Search loses most');
    top.type('q');
    await top.ended;
  });

  it('has colours, and none with NO_COLOR', async () => {
    for (const [env, has] of [
      [{}, true],
      [{ NO_COLOR: '1' }, false],
      [{ TERM: 'dumb' }, false],
    ] as const) {
      const top = started(env);
      await settle();
      expect(top.writes[1]!.includes(`${ESC}[31m`)).toBe(has);
      top.type('q');
      await top.ended;
    }
  });

  it('follows the size of the screen', async () => {
    const top = started();
    await settle();
    Object.assign(top.stdout, { columns: 40, rows: 6 });
    top.stdout.emit('resize');
    expect(top.writes.at(-1)!.startsWith(`${ESC}[2J`)).toBe(true);
    expect(top.writes.at(-1)!.split(`${ESC}[K`)).toHaveLength(7);
    top.type('q');
    await top.ended;
  });
});

describe('weir top elsewhere', () => {
  const stand = commandStand();

  it('writes a line of JSON for each change, until it is asked to end', async () => {
    const { process } = fakeProcess({ isTTY: false });
    const clock = new ManualClock();
    const lines: string[] = [];
    let fleet = FLEET;
    const output = { log: (text: string) => void lines.push(text), error: () => {} };
    const read = () => Promise.resolve(fleet);
    const ended = writeLines({ read, clock, terminal: terminalOf(process), output });
    await clock.advanceAsync(1000);
    fleet = { ...FLEET, atMs: FLEET.atMs + 1000 };
    await clock.advanceAsync(1000);
    process.emit('SIGTERM');
    expect(await ended).toBe(143);
    expect(lines.map((text) => (JSON.parse(text) as FleetState).atMs - FLEET.atMs)).toEqual([
      ...[0, 1000],
    ]);
    expect(JSON.parse(lines[0]!)).toMatchObject({
      verdict: { text: verdict(FLEET).text, why: verdict(FLEET).why },
    });
  });

  it('prints one table of what the fleet has written, and exits', async () => {
    expect(await stand.weir('top', '--once')).toMatchObject({
      code: 1,
      err: expect.stringContaining('No process has written figures') as string,
    });
    const { client } = connectRedis({ url: stand.redis.url });
    await until(() => client.status === 'ready', { what: 'the connection' });
    const clock = new ManualClock();
    const board = new RedisBoard({ client, prefix: 'weir' }, clock);
    const fleet = new Fleet({
      ...{ nodeId: 'api-1', board, clock, maxSeries: 100, nodes: () => 1, isAlarmed: () => false },
      snapshot: () => snapshot('api-1', [series('total', '', 10), series('policy', 'login', 10)]),
      ...{ about: nothingElse, useSalt: () => {}, failed: () => {} },
    });
    // It leads, looks for the first time, and then has figures to show.
    for (const _ of [1, 2, 3]) {
      clock.advance(5000);
      fleet.tick(clock.now());
      await fleet.settled();
    }
    const { code, out } = await stand.weir('top', '--once');
    expect(code).toBe(0);
    expect(out).toMatch(/^weir top {2}shop {2}1 node, all on rev 4\n/);
    // The processes know that somebody looks, and write more often.
    expect(await client.get('weir:{monitor}:watch')).toBe('1');
    expect(await stand.json<FleetState>('top', '--once')).toMatchObject({ leader: 'api-1' });
    await board.set('merged', JSON.stringify({ v: 1, ...FLEET }), 60_000);
    expect((await stand.weir('top', '--once')).out).toContain(`\n  ${verdict(FLEET).why}\n`);
    expect(await stand.json('top', '--once')).toMatchObject({
      verdict: { text: verdict(FLEET).text, why: verdict(FLEET).why },
    });
    const kept = await client.get('weir:{monitor}:merged');
    for (const [text, said] of [
      ['{"v":1,"nodes":[],"series":[]}', 'the figures that are there are damaged'],
      ['{"v":2}', 'the figures that are there are of another version of nestjs-weir'],
    ] as const) {
      await board.set('merged', text, 60_000);
      const once = { code: 1, err: `Nothing can be shown: ${said}.\n` };
      expect(await stand.weir('top', '--once')).toMatchObject(once);
      expect((await stand.weir('status')).out).toContain(`\nnow: not known, ${said}\n`);
      expect(await stand.json('status')).toMatchObject({ fleet: null });
    }
    await board.set('merged', kept!, 60_000);
    const status = await stand.weir('status');
    expect(status.out).not.toContain('\nsince: ');
    const marks = [{ atMs: 3_720_000, kind: 'overload', text: 'overload begins' }];
    await board.set('merged', JSON.stringify({ v: 1, ...FLEET, marks }), 60_000);
    expect((await stand.weir('status')).out).toContain('\nsince: 1 Jan 01:02 UTC\n');
    expect(status.out).toContain(
      'now: Overload: 104 % of capacity asked for. Search loses most: 1 in 5 turned away',
    );
    expect(status.out).toContain(
      '\nwhy: all apps together ask for 52k/s of 50k/s; search asks for ',
    );
    expect(status.out).toMatch(
      /app search +11,000 +2,100 +19 % +all apps together ask for 52k\/s of 50k\/s\n/,
    );
    expect(status.out).toMatch(
      /denied key +policy +denied in 1 min +why\n1a2b3c4d +login +900 +more than its policy allows by this key\n/,
    );
    expect(status.out).toMatch(/db +open +ramp +0 +2 +0 +0\n/);
    expect(status.out).toMatch(/policy +hot value +tokens\/period\ncatalog +9f8e7d6c +1,234\n/);
    expect(await stand.json('status')).toMatchObject({ fleet: { nodeCount: 12 } });
    await board.set('merged', JSON.stringify({ v: 1, ...manyLimited(25) }), 60_000);
    const many = (await stand.weir('status')).out;
    for (let n = 0; n < 25; n++) {
      expect(many).toMatch(new RegExp(`app app-${n} +40 +${n + 1} .* over its ceiling of 9/s\\n`));
    }
    expect(many).toMatch(/\n1a2b3c4d +login +1 +more than its policy allows by this key\n/);
    expect(topText(shown({ fleet: manyLimited(25), view: 'alerts' }))).toContain('key 1a2b3c4d');
    board.close();
    client.disconnect();
  });
});
