import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import ts from 'typescript';
import { durationMs } from '../../lib/common/duration.js';
import { root } from '../setup/ensure-built.js';
import { parseSource } from './exported-names.js';
import { readPage, tablesOf } from './markdown.js';

/** A bound on a page, the room and the constant that it is, and its value. Defaults of options are compared by docs.spec.ts. */
const BOUNDS: readonly (readonly [page: string, words: string, constant: string, value: number])[] =
  [
    ['alerts', 'up to 100 alerts', 'observability MOST_IN_CALL', 100],
    ['alerts', 'and 64 kB a call', 'observability LONGEST_BODY', 65_536],
    ['alerts', '2, 4 … 60 s', 'observability LONGEST_WAIT_MS', 60_000],
    ['alerts', 'for ten minutes', 'observability GIVE_UP_MS', 600_000],
    ['alerts', 'At most 256 alerts wait', 'observability MOST_QUEUED', 256],
    ['alerts', 'sent again every 60 s', 'observability REPEAT_MS', 60_000],
    ['alerts', 'used 80 % of its', 'observability NEAR', 0.8],
    ['alerts', 'each of the last ten seconds', 'observability NEAR_SECONDS', 10],
    ['alerts', 'left less than a fifth', 'limiter SCARCE', 0.2],
    ['alerts', 'about three processes', 'observability STORE_TELLERS', 3],
    ['alerts', 'within half a minute', 'observability STORE_SPREAD_MS', 30_000],
    ['alerts', 'after two minutes', 'observability LATE_MS', 120_000],
    ['algorithms', 'six times the state', 'algorithms SUB_WINDOWS', 10],
    ['bulkhead', 'Every half second', 'protection LEAST_MICROS', 500_000],
    ['bulkhead', 'at least 20 calls', 'protection LEAST_CALLS', 20],
    ['bulkhead', 'above 1.5 times that', 'protection TOLERANCE', 1.5],
    ['bulkhead', 'weighted by a fifth', 'protection SMOOTHING', 0.2],
    ['bulkhead', 'in that time takes a tenth', 'protection AFTER_DEADLINE', 0.9],
    ['bulkhead', 'never falls below 4', 'protection FLOOR', 4],
    ['capacity', 'known after five days', 'observability LEAST_DAYS', 5],
    ['changing-quotas', 'next tick on (100 ms)', 'algorithms TICK_MS', 100],
    ['changing-quotas', 'more than 256 apps', 'stores MOST_RETIRED', 256],
    ['changing-the-configuration', '1000 revisions', 'stores MOST_REVISIONS', 1000],
    ['changing-the-configuration', 'at most 16 MiB', 'stores MOST_HISTORY_BYTES', 2 ** 24],
    ['changing-the-configuration', 'may have 1 MiB', 'config MOST_BYTES', 2 ** 20],
    ['changing-the-configuration', 'Up to 16 wait', 'stores MOST_STAGED', 16],
    ['changing-the-configuration', 'one poll (5 s ± 20 %)', 'config DEFAULT_POLL_MS', 5000],
    ['changing-the-configuration', 'above 2^48', 'stores HIGHEST_REVISION', 2 ** 48],
    ['configuration', 'from 1 ms to 365 days', 'common LONGEST_MS', 365 * 86_400_000],
    ['configuration', 'more than 1 MiB', 'config MOST_BYTES', 2 ** 20],
    ['configuration', 'more than 32 levels', 'config MOST_DEPTH', 32],
    ['dashboard', 'cut after ten seconds', 'dashboard CUT_MICROS', 10_000_000],
    ['dashboard', 'end after five minutes', 'dashboard LONGEST_MICROS', 300_000_000],
    ['dashboard', 'at least 16 characters', 'dashboard LEAST_TOKEN', 16],
    ['degradation-caches', 'more than 1 MiB', 'stores MOST_BYTES', 2 ** 20],
    ['degradation-caches', 'or 100 levels', 'stores DEEPEST', 100],
    ['degradation-caches', 'more than 5 s of the future', 'degradation MOST_SKEW_MS', 5000],
    ['command-line', 'gone for 15 s', 'degradation LEASE_MS', 15_000],
    ['failure-modes', 'share 16,384 buckets', 'stores OVERFLOW_BUCKETS', 16_384],
    ['failure-modes', 'process | 10,000', 'local MOST_KEYS', 10_000],
    ['failure-modes', 'connection | about 1,000', 'stores MOST_CONNECTING', 1024],
    ['failure-modes', 'requests | 1,000', 'limiter MOST_SETS', 1000],
    ['failure-modes', 'apps of a quota | 1,000', 'limiter MOST_APPS', 1000],
    ['failure-modes', 'within about 2 s', 'stores LONGEST_PROBE_MS', 2000],
    ['failure-modes', 'nine tenths of the guarantee', 'local OFFLINE_PART', 0.9],
    ['failure-modes', 'one a second for each key', 'limiter LONGEST_MEMORY_MICROS', 1_000_000],
    ['fleet', 'of up to 8 kB', 'observability MOST_BYTES', 8192],
    ['fleet', 'every 5 seconds', 'observability PERIOD_MS', 5000],
    ['fleet', '200 of them in a second', 'observability WRITES_PER_SECOND', 200],
    ['fleet', '50 of all processes', 'observability QUIET_WRITES_PER_SECOND', 50],
    ['fleet', '20 seconds', 'observability LONGEST_PERIOD_MS', 20_000],
    ['fleet', '120 seconds', 'observability SECONDS', 120],
    ['fleet', '180 minutes', 'observability MINUTES', 180],
    ['fleet', '168 hours', 'observability HOURS', 168],
    ['fleet', '2,000 series of metrics', 'observability MOST_METRICS', 2000],
    ['fleet', 'Above 1,000 requests a second', 'observability BUSY', 1000],
    ['fleet', 'one in eight is timed', 'observability SAMPLE', 8],
    ['fleet', '1,024 places', 'limiter CELLS', 1024],
    ['fleet', 'over the last minute', 'limiter SECONDS_OF_MINUTE', 60],
    ['grpc', 'paused when 16 wait', 'transports MOST_BEFORE_PAUSE', 16],
    ['histories', 'within 2.5 s', 'cli CHARGED_WITHIN_SECONDS', 2.5],
    ['hot-reload', '20 ms after a change', 'config ACKNOWLEDGED_AFTER_MS', 20],
    ['hot-reload', 'more than a minute ago', 'config AT_ONCE_MS', 60_000],
    ['hot-values', 'no more than a tenth', 'limiter UNCOUNTED_DIVISOR', 10],
    ['hot-values', 'and 64 names', 'local MOST_NAMES', 64],
    ['hot-values', 'from 1,024', 'local LEAST_WIDTH', 1024],
    ['hot-values', 'to 65,536', 'local MOST_WIDTH', 65_536],
    ['hot-values', 'up to 10,000', 'limiter MOST_VALUES', 10_000],
    ['limiter', 'waits up to 5 s', 'limiter READY_TIMEOUT_MS', 5000],
    ['limiter', 'Keys longer than 128', 'common LONGEST_PLAIN_KEY', 128],
    ['limiter', 'but for a second at most', 'limiter LONGEST_MEMORY_MICROS', 1_000_000],
    ['microservices', 'of the last 10 s', 'transports WINDOW_SECONDS', 10],
    ['microservices', 'and one a second', 'transports FREE_PER_SECOND', 1],
    ['microservices', 'for a tenth of the time', 'transports SHARE_OF_TIME', 0.1],
    ['options', '16,384 overflow buckets', 'stores OVERFLOW_BUCKETS', 16_384],
    ['options', 'up to 10,000,000', 'limiter MOST_KEYS', 10_000_000],
    ['options', 'a sixtieth of many keys', 'stores SWEEPS_PER_ROUND', 60],
    ['overload', 'one run in 64', 'overload TICKET_EVERY', 64],
    ['overload', 'took longer than a second', 'overload LONG_TURN_MS', 1000],
    ['policies', 'within 100 years', 'limiter LONGEST_FILL_MS', 100 * 365 * 86_400_000],
    ['policies', '2 to 120', 'limiter MOST_SUB_WINDOWS', 120],
    ['policies', 'up to 1,000 sets of figures', 'limiter MOST_SETS', 1000],
    ['protection', 'at most two milliseconds late', 'protection TICK_MICROS', 2000],
    ['quota-events', 'more than 90 %', 'algorithms OVERLOAD_BEGINS', 0.9],
    ['quota-events', 'below 85 %', 'algorithms OVERLOAD_ENDS', 0.85],
    ['quotas', 'at most 1,000 apps', 'limiter MOST_APPS', 1000],
    ['quotas', '0.9 × guaranteed', 'local OFFLINE_PART', 0.9],
    ['quotas', 'for each 64 KB', 'limiter BYTES_PER_TOKEN', 65_536],
    ['redis', 'A thousand or so may wait', 'stores MOST_CONNECTING', 1024],
    ['redis', 'over 64 hash tags', 'stores SHARDS', 64],
    // The counters of leases begin behind what every bucket has, at 32.
    ['redis', 'a leased bucket has 40 more', 'stores LEASED_BYTES', 72],
    ['redis', 'Once four requests', 'local EARNING', 4],
    ['redis', '10 to 100 ms', 'local LONGEST_HORIZON_MICROS', 100_000],
    [
      'redis',
      '(a quarter of the time in which the bucket fills, 10',
      'local SHORTEST_HORIZON_MICROS',
      10_000,
    ],
    ['redis', 'one and a half times', 'local HEADROOM', 1.5],
    ['redis', 'is less than 10', 'local LEAST_SHARE', 10],
    ['redis', 'goes back within 50 ms', 'local SWEEP_MS', 50],
    ['redis', 'for at least 50 ms', 'local KEY_PACE_MICROS', 50_000],
    ['redis', 'leases up to 10,000 keys', 'local MOST_KEYS', 10_000],
    ['redis-outages', 'write after 100 ms', 'stores FIRST_PROBE_MS', 100],
    ['redis-outages', 'intervals of up to 2 s', 'stores LONGEST_PROBE_MS', 2000],
    ['redis-outages', 'Three failures one after the other', 'common FAILURES_TO_PAUSE', 3],
    ['simulator', '0.4 to', 'cli LEAST_DELAY_MICROS', 200],
    ['simulator', '2 ms there and back', 'cli DELAY_SPREAD_MICROS', 800],
    ['simulator', 'processes, up to 1000', 'cli MOST_NODES', 1000],
    ['simulator', 'at most 0.95', 'cli MOST_LOCAL', 0.95],
    ['simulator', 'apps with t below 1.5', 'cli REQUESTS_FOR_STOCK', 1.5],
    ['simulator', '0.02 less on any other', 'cli LOST_ON_ANY_FIGURES', 0.02],
    ['simulator', 'up to 0.08 less', 'cli LOST_WHERE_SMALL', 0.08],
    ['simulator', 'a burst of 4 ×', 'cli PACES_IN_BURST', 4],
    ['simulator', 'fewer than 1,000 requests', 'cli FEW_REQUESTS', 1000],
  ];

const wordsOf = (page: string): string =>
  readPage(`docs/${page}.md`).replace(/[*`]/g, '').replace(/\s+/g, ' ');

describe('bounds on the pages', () => {
  it.each(BOUNDS)('are those of the code: %s, "%s"', (page, words, constant, value) => {
    expect(wordsOf(page)).toContain(words);
    const [room, name] = constant.split(' ');
    const found = constantsOf(room!, name!);
    expect({ constant, isThere: found.length > 0 }).toEqual({ constant, isThere: true });
    expect(found).toContain(value);
  });
});

describe('thresholds of alerts', () => {
  const DEFAULTS = tablesOf(readPage('docs/configuration-alerts.md'))[0]!.rows;
  const [rules] = tablesOf(readPage('docs/alerts.md')).filter(({ head }) => head[0] === 'rule');

  /** In milliseconds, or as they are; parts also as percentages. */
  const defaultsOf = (rule: string): number[] =>
    DEFAULTS.filter(([field]) => field!.includes(`.${rule}.`)).flatMap(([, cell]) => {
      const text = cell!.replace(/[`']/g, '');
      if (!/^\d/.test(text)) return [];
      const value = /[a-z]/.test(text) ? durationMs(text, 'default') : Number(text);
      return [value, value * 100];
    });
  const minutesOf = (rule: string, field: string): number => {
    const [, cell] = DEFAULTS.find(([name]) => name!.endsWith(`.${rule}.${field}\``))!;
    return durationMs(cell!.replace(/[`']/g, ''), field) / 60_000;
  };
  const UNITS: Readonly<Record<string, number>> = {
    ms: 1,
    s: 1000,
    min: 60_000,
    h: 3_600_000,
    days: 86_400_000,
  };
  /** The time that a process which stopped writing is given before it counts as silent, and the threshold. */
  const SILENT_MS = 25_000;

  it.each(rules!.rows.map(([rule, , when]) => [rule!.replaceAll('`', ''), when!] as const))(
    'on their page are the defaults: %s',
    (rule, when) => {
      const figures = [
        ...when
          .replace(/p99|level[s\](). a-z]*[\d, or]+/g, '')
          .matchAll(/(\d[\d.]*) ?(ms|s|min|h|days)?\b/g),
      ];
      const known = [...defaultsOf(rule), ...(rule === 'nodeSilent' ? [SILENT_MS] : [])];
      const values = figures.map(([, value, unit]) => Number(value) * (UNITS[unit ?? ''] ?? 1));
      const near = (one: number): boolean => known.some((other) => Math.abs(other - one) < 1e-9);
      expect(values.filter((one) => !near(one))).toEqual([]);
    },
  );

  it('are learnt for as long as their page says', () => {
    const learnt = ['qpsRise', 'denialRise', 'p99Rise'].map(
      (rule) => Math.ceil(minutesOf(rule, 'baseline') / 2) + Math.floor(minutesOf(rule, 'window')),
    );
    const words = /qpsRise for (\d+) minutes, denialRise for (\d+), p99Rise for (\d+)/;
    expect(words.exec(wordsOf('alerts'))?.slice(1).map(Number)).toEqual(learnt);
  });
});

/** The values of the constants of that name in a room, as the syntax of its files says them. */
function constantsOf(room: string, name: string): number[] {
  return sourcesOf(room).flatMap((file) => {
    const declared = declarationOf(file, name);
    return declared?.initializer === undefined ? [] : [valueOf(declared.initializer, file)];
  });
}

const sourcesOf = (room: string): string[] =>
  readdirSync(join(root, 'lib', room), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .map((file) => join('lib', room, file));

const declarationOf = (file: string, name: string): ts.VariableDeclaration | undefined =>
  parseSource(file)
    .statements.filter(ts.isVariableStatement)
    .flatMap(({ declarationList }) => [...declarationList.declarations])
    .find((one) => one.name.getText() === name);

/** NaN for what is no product of numbers. */
function valueOf(node: ts.Expression, file: string): number {
  if (ts.isNumericLiteral(node)) return Number(node.text);
  if (ts.isIdentifier(node)) {
    const declared = declarationOf(file, node.text);
    return declared?.initializer === undefined ? NaN : valueOf(declared.initializer, file);
  }
  if (!ts.isBinaryExpression(node)) return NaN;
  const [left, right] = [valueOf(node.left, file), valueOf(node.right, file)];
  if (node.operatorToken.kind === ts.SyntaxKind.AsteriskToken) return left * right;
  if (node.operatorToken.kind === ts.SyntaxKind.AsteriskAsteriskToken) return left ** right;
  return NaN;
}
