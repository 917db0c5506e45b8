import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { FleetHistory } from '../../lib/observability/fleet/history.js';
import { FleetMerge } from '../../lib/observability/fleet/merge.js';
import { noCounts } from '../../lib/observability/series.js';
import { SystemClock } from '../../lib/common/clock.js';
import { connectRedis } from '../../lib/stores/redis/connection.js';
import { RedisBoard } from '../../lib/stores/redis/redis-board.js';
import { until } from '../support/index.js';
import { commandStand } from './weir-command.js';

const MINUTE = 60_000_000;

describe('weir report', () => {
  const stand = commandStand();
  let folder: string;
  beforeAll(() => (folder = mkdtempSync(join(tmpdir(), 'weir-report-'))));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const file = (document: object): string => {
    const path = join(folder, 'weir.json');
    writeFileSync(path, JSON.stringify(document));
    return path;
  };
  async function configure(): Promise<void> {
    const document = {
      cluster: { capacity: 1000 },
      apps: { search: { guaranteed: 100, burst: 300 } },
      policies: { login: { rate: '5/min' } },
    };
    const { err } = await stand.weir('config', 'set', '--patch', file(document), '--new');
    expect(err).toBe('');
  }

  /** Leaves the figures of a process that has merged two minutes. */
  async function leaveFigures(): Promise<void> {
    const { client } = connectRedis({ url: stand.redis.url });
    await until(() => client.status === 'ready', { what: 'the connection' });
    const clock = new SystemClock();
    const board = new RedisBoard({ client, prefix: 'weir' }, clock);
    const history = new FleetHistory(board, clock, 100);
    for (const ago of [2, 1]) {
      const merge = new FleetMerge(100);
      const at = clock.epochMs(clock.now()) * 1000 - ago * MINUTE;
      const counts = { ...noCounts(), count: 15_000, denied: 3000, used: 12_000 };
      merge.table.total.add(at, 60_000, counts);
      merge.table.ensure('app', 'search')!.add(at, 60_000, counts);
      merge.table.ensure('policy', 'login')!.add(at, 60_000, counts);
      await history.keep(merge, at);
    }
    board.close();
    client.disconnect();
  }

  it('tells how much of the capacity was used, for people and machines', async () => {
    await configure();
    await leaveFigures();
    const { code, out } = await stand.weir('report');
    expect(code).toBe(0);
    const lines = out.split('\n');
    expect(lines[0]).toMatch(/^cluster default, \d+ \w+ to \d+ \w+$/);
    expect(lines[2]).toMatch(/^cluster +200 +200 +20 % +0 of 5 days known/);
    expect(lines[3]).toMatch(
      /^app search \(guaranteed 100\) +200 +200 +200 % +over its guarantee since/,
    );
    expect(lines[4]).toMatch(/^policy login +250 +250 +0 of 5 days known/);
    const { rows, days } = await stand.json<{ rows: { name: string }[]; days: number }>('report', '--days', '2'); // oxfmt-ignore
    expect([days, rows.map(({ name }) => name)]).toEqual([2, ['default', 'search', 'login']]);
    const csv = await stand.weir('report', '--csv');
    expect(csv.out.trim().split('\n')).toHaveLength(4);
  });

  it('says what is missing, and what was not understood', async () => {
    expect(await stand.weir('report')).toMatchObject({
      code: 1,
      err: expect.stringContaining('No process has left figures yet') as string,
    });
    expect((await stand.weir('report', '--days', '8')).code).toBe(2);
    expect((await stand.weir('report', '--csv', '--json')).code).toBe(2);
  });

  it('lets config diff say what a change would have done', async () => {
    await configure();
    const change = { apps: { search: { burst: 150 } }, policies: { login: { rate: '9/min' } } };
    expect(await stand.weir('config', 'diff', file(change))).toMatchObject({
      ...{ code: 0, err: '' },
      out: expect.stringContaining('no figures of the fleet are known') as string,
    });
    await leaveFigures();
    const { out, code } = await stand.weir('config', 'diff', file(change));
    expect(code).toBe(0);
    expect(out).toMatch(/The last 2 minutes, with these limits:\n/);
    // 200 tokens a second used and 50 denied; the ceiling comes down from 300 to 150.
    expect(out).toMatch(/search +250 +250 +0 +100 +0 +2\n/);
    expect(out).toMatch(/login +altered +250 +250 +20 %\n/);
    const { impact } = await stand.json<{ impact: { minutes: number } }>('config', 'diff', file(change)); // oxfmt-ignore
    expect(impact.minutes).toBe(2);
  });
});
