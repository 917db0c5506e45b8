import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis } from '../../test/support/redis-server.js';
import { atLeast, atMost, below } from '../support/bars.js';
import { CPU, cpuOf, measureCalls, type Contestants } from '../support/calls.js';
import { MonitorProcess } from '../support/monitor/monitor-process.js';
import { mergedNodes, SimulatedNodes, snapshotOf } from '../support/monitor/simulated-nodes.js';
import { withRedisUsage } from '../support/redis-usage.js';
import { median, medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';
import { apartIn } from '../support/twins.js';
import { infoField } from '../../test/support/redis-client.js';

const CASE = 'a decision';
const DENIAL = 'a denial, of one key again and again';
const MOST_TIMES_UNWATCHED = 1.05;
/** A bar of 5 % cannot be told by twins that are 5 % apart. */
const MOST_APART = 0.025;
/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const LIMIT = { keys: 1, limit: 1_000_000, periodMs: 10 };

/** Nothing of it comes back while it is measured. */
const EMPTY = { keys: 1, limit: 1, periodMs: 24 * 3_600_000 };
const MOST_NS_OF_A_DENIAL = 15;

const UNWATCHED = 'unwatched';
const WATCHED = 'watched';
const CONTESTANTS: Contestants = [
  [UNWATCHED, 'weir-unwatched'],
  // Each twice: how far two of the same are apart is how far the ratio can be trusted.
  [`${UNWATCHED} again`, 'weir-unwatched'],
  [WATCHED, 'weir-watched'],
  [`${WATCHED} again`, 'weir-watched'],
];

const MOST_TICK_MS = 2;
/** The bar is of as many series as a process may have; not every one of them has a line. */
const MOST_SCRAPE_MS = 15;
const MOST_LINES = 2000;
const MOST_GROWTH_BYTES = 2 ** 20;

const NODES = 1000;
const RUNS = 12;
/** One look of the leader. */
const RUN_MS = 2500;
const IDLE_MS = 5000;
const MOST_TURN_MS = 2.5;
const MOST_PART_OF_CORE = 0.01;
const MOST_REDIS_BYTES = 4 * 2 ** 20;

interface Part {
  readonly series: Series[];
  readonly bars: Bar[];
}

export const monitor: Suite = {
  name: 'monitor',
  about: 'what the monitor adds to a decision, its ticks and scrapes, and a fleet of 1,000 nodes',

  async run(context) {
    const parts = [
      ...[await decisions(context), await denials(context)],
      ...[await figures(context), await fleet(context)],
    ];
    return {
      series: parts.flatMap(({ series }) => series),
      absences: [],
      bars: parts.flatMap(({ bars }) => bars),
      notes: [
        'Watched and unwatched decisions count in the same fields; only one has them read once a second.',
        `Of ${NODES} nodes one is a process, which leads; the others are their commands, one at a time, with what that one has written.`,
        'A turn of the leader is its p99 less that of a process beside it that shares no figures; all runs are in the table.',
      ],
    };
  },
};

async function decisions(context: SuiteContext): Promise<Part> {
  const series = await measureCalls(CASE, CONTESTANTS, LIMIT, UNWATCHED, context);
  const ratio = medianRatio(cpuOf(WATCHED, CASE, series), cpuOf(UNWATCHED, CASE, series));
  const promise = `a watched decision ≤ ${MOST_TIMES_UNWATCHED} × an unwatched one, ${CPU}`;
  const apart = apartIn(series, CASE, CPU);
  return { series, bars: [atMost(promise, ratio, MOST_TIMES_UNWATCHED, apart, MOST_APART)] };
}

/** Keys that are denied are noted, by samples. */
async function denials(context: SuiteContext): Promise<Part> {
  const series = await measureCalls(DENIAL, CONTESTANTS, EMPTY, UNWATCHED, context, 'denied');
  const [watched, unwatched] = [WATCHED, UNWATCHED].map((name) => cpuOf(name, DENIAL, series));
  const more = median(watched!.map((ns, round) => ns - unwatched![round]!));
  const promise = `a watched denial ≤ ${MOST_NS_OF_A_DENIAL} ns more than an unwatched one, CPU`;
  const apart = apartIn(series, DENIAL, CPU);
  return { series, bars: [atMost(promise, more, MOST_NS_OF_A_DENIAL, apart)] };
}

/** Of a process by itself, by its processor time and its heap. */
async function figures({ progress }: SuiteContext): Promise<Part> {
  progress('ticks', 'a hundred series, with alerts');
  const tick = await MonitorProcess.figures('tick');
  progress('scrapes', 'as many series as there may be');
  const scrape = await MonitorProcess.figures('scrape');
  progress('memory', 'ten simulated minutes');
  const { bytes = [] } = await MonitorProcess.figures('memory');
  const [named = 0, lines = 0] = [tick['series']?.[0], scrape['lines']?.[0]];
  const growth = bytes.at(-1)! - bytes[1]!;
  const row = (caseName: string, metric: string, values: readonly number[]): Series => ({
    ...{ case: caseName, contender: 'weir', metric, values },
  });
  const ofTick = `a tick of ${named} series`;
  const ofScrape = `a scrape of ${lines} lines`;
  return {
    series: [
      row(ofTick, 'CPU ms', tick['ms']!),
      row(ofScrape, 'CPU ms', scrape['ms']!),
      row(
        'ten minutes at 10,000/s',
        'MB at the end of each',
        bytes.map((one) => one / 2 ** 20),
      ),
    ],
    bars: [
      atMost(`${ofTick} ≤ ${MOST_TICK_MS} ms CPU, median`, median(tick['ms']!), MOST_TICK_MS),
      atMost(
        `${ofScrape} ≤ ${MOST_SCRAPE_MS} ms CPU, median, as of ${MOST_LINES.toLocaleString('en')} lines`,
        (median(scrape['ms']!) * MOST_LINES) / lines,
        MOST_SCRAPE_MS,
      ),
      below('memory of minute 10 less that of minute 2 < 1 MB', growth, MOST_GROWTH_BYTES),
    ],
  };
}

/** Redis and the leader at a thousand nodes. */
async function fleet({ progress }: SuiteContext): Promise<Part> {
  progress(`${NODES} nodes`, 'starting');
  const server = await startRedis();
  const client = new Redis(server.adminUrl);
  const memoryOf = async (): Promise<number> =>
    Number(infoField(await client.info('memory'), 'used_memory'));
  const processes: MonitorProcess[] = [];
  let nodes: SimulatedNodes | undefined;
  try {
    const idle = await withRedisUsage(client, () => sleep(IDLE_MS));
    const before = await memoryOf();
    const { url } = server;
    const leader = await MonitorProcess.serving({ url, nodeId: 'leader', fleet: true });
    processes.push(leader);
    const text = await snapshotOf(server.adminUrl, 'leader');
    const twin = await MonitorProcess.serving({ url, nodeId: 'twin', fleet: false });
    processes.push(twin);
    nodes = new SimulatedNodes(server.adminUrl, NODES, text);
    await nodes.begin();
    // Its first look finds them all new.
    await sleep(2 * RUN_MS);
    const [led, alone]: [number[], number[]] = [[], []];
    const begun = performance.now();
    const { usage } = await withRedisUsage(client, async () => {
      for (let run = 0; run < RUNS; run++) {
        progress(`${NODES} nodes`, `run ${run + 1} of ${RUNS}`);
        await Promise.all([leader.begin(), twin.begin()]);
        await sleep(RUN_MS);
        led.push((await leader.turns()).p99);
        alone.push((await twin.turns()).p99);
      }
    });
    const wallMicros = (performance.now() - begun) * 1000;
    const part = usage.cpuMicros / wallMicros - idle.usage.cpuMicros / (IDLE_MS * 1000);
    const bytes = (await memoryOf()) - before;
    const merged = await mergedNodes(server.adminUrl);
    const turn = median(led.map((ms, run) => ms - alone[run]!));
    const caseName = `${NODES} nodes`;
    const row = (contender: string, metric: string, values: readonly number[]): Series => ({
      ...{ case: caseName, contender, metric, values },
    });
    return {
      series: [
        row('leader', 'p99 of its turns, ms', led),
        row('no leader', 'p99 of its turns, ms', alone),
        row('Redis', '% of a core', [part * 100]),
        row('Redis', '% of a core, in commands', [(usage.commandMicros / wallMicros) * 100]),
        row('Redis', 'commands a second', [(usage.commands / wallMicros) * 1e6]),
        row('Redis', 'MB', [bytes / 2 ** 20]),
      ],
      bars: [
        atLeast(`nodes that the leader has merged ≥ ${NODES}`, merged, NODES),
        atMost(`${caseName}: a turn of the leader ≤ ${MOST_TURN_MS} ms`, turn, MOST_TURN_MS),
        below(`${caseName}: Redis < 1 % of a core`, part, MOST_PART_OF_CORE),
        below(`${caseName}: Redis < 4 MB`, bytes, MOST_REDIS_BYTES),
      ],
    };
  } finally {
    nodes?.end();
    await Promise.all(processes.map((one) => one.stop()));
    client.disconnect();
    await server.stop();
  }
}
