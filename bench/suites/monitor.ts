import { Redis } from 'ioredis';
import { setTimeout as sleep } from 'node:timers/promises';
import { startRedis } from '../../test/support/redis-server.js';
import { atLeast, atMost, below } from '../support/bars.js';
import { CPU, cpuOf, measureCalls, type Contestants } from '../support/calls.js';
import { MonitorProcess } from '../support/monitor/monitor-process.js';
import {
  mergedNodes,
  SimulatedNodes,
  snapshotOf,
  type Saying,
} from '../support/monitor/simulated-nodes.js';
import { withRedisUsage } from '../support/redis-usage.js';
import { median, medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';
import { apartIn } from '../support/twins.js';
import { infoField } from '../../test/support/redis-client.js';

const CASE = 'a decision';
const DENIAL = 'a denial, of one key again and again';
const MOST_TIMES_UNWATCHED = 1.05;
/** Twins that are 5 % apart cannot decide a bar of 5 %. */
const MOST_APART = 0.025;
/** As in the suite `memory`: a hundred million per second, so that all of it is allowed. */
const LIMIT = { keys: 1, limit: 1_000_000, periodMs: 10 };

/** A limit of which no token comes back during a measurement. */
const EMPTY = { keys: 1, limit: 1, periodMs: 24 * 3_600_000 };
const MOST_NS_OF_A_DENIAL = 15;

const UNWATCHED = 'unwatched';
const WATCHED = 'watched';
const CONTESTANTS: Contestants = [
  [UNWATCHED, 'weir-unwatched'],
  // Each has a twin: the distance of two of the same code is the error of the ratio.
  [`${UNWATCHED} again`, 'weir-unwatched'],
  [WATCHED, 'weir-watched'],
  [`${WATCHED} again`, 'weir-watched'],
];

const MOST_TICK_MS = 2;
/** The bar is for as many series as a process may have; not every one of them has a line. */
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
        'All of these nodes read the configuration every 5 s, watched or not; a second Redis serves the same nodes without figures, at the same time.',
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

/** The figures of a single process: its processor time and its heap. */
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

/** A Redis that a thousand nodes talk to, and a process. */
interface Scene {
  readonly client: Redis;
  readonly process: MonitorProcess;
  stop(): Promise<void>;
}

async function scene(saying: Saying, text?: string): Promise<Scene> {
  const server = await startRedis();
  const client = new Redis(server.adminUrl);
  const { url } = server;
  const nodeId = 'real';
  const process = await MonitorProcess.serving({ url, nodeId, fleet: saying !== 'polls' });
  const own = text ?? (await snapshotOf(client, nodeId));
  const nodes = new SimulatedNodes(server.adminUrl, NODES, own, saying);
  await nodes.begin();
  return {
    ...{ client, process },
    async stop() {
      nodes.end();
      await process.stop();
      client.disconnect();
      await server.stop();
    },
  };
}

/** The part of a core that Redis used in all. */
interface Load {
  readonly part: number;
  readonly inCommands: number;
  readonly wakeUps: number;
}

async function loadOf(client: Redis, work: () => Promise<unknown>): Promise<Load> {
  const begun = performance.now();
  const { usage } = await withRedisUsage(client, work);
  const micros = (performance.now() - begun) * 1000;
  return {
    part: usage.cpuMicros / micros,
    inCommands: usage.commandMicros / micros,
    wakeUps: (usage.reads / micros) * 1e6,
  };
}

const memoryOf = async (client: Redis): Promise<number> =>
  Number(infoField(await client.info('memory'), 'used_memory'));

async function idleLoad(): Promise<Load & { readonly bytes: number }> {
  const server = await startRedis();
  const client = new Redis(server.adminUrl);
  try {
    return { ...(await loadOf(client, () => sleep(IDLE_MS))), bytes: await memoryOf(client) };
  } finally {
    client.disconnect();
    await server.stop();
  }
}

/**
 * Redis and the leader at a thousand nodes. Every process reads the configuration, and its figures go along with that: what
 * they add is told by another Redis at the same time, to which the same nodes say all but their figures.
 */
async function fleet({ progress }: SuiteContext): Promise<Part> {
  progress(`${NODES} nodes`, 'starting');
  const scenes: Scene[] = [];
  try {
    const idle = await idleLoad();
    const watched = await scene('polls and figures');
    scenes.push(watched);
    const text = await snapshotOf(watched.client, 'real');
    const unwatched = await scene('polls', text);
    scenes.push(unwatched);
    // The leader's first look finds them all new.
    await sleep(2 * RUN_MS);
    const [led, alone]: [number[], number[]] = [[], []];
    const work = (async () => {
      for (let run = 0; run < RUNS; run++) {
        progress(`${NODES} nodes`, `run ${run + 1} of ${RUNS}`);
        await Promise.all([watched.process.begin(), unwatched.process.begin()]);
        await sleep(RUN_MS);
        led.push((await watched.process.turns()).p99);
        alone.push((await unwatched.process.turns()).p99);
      }
    })();
    const [all, polls] = await Promise.all(
      [watched, unwatched].map(({ client }) => loadOf(client, () => work)),
    );
    const bytes = (await memoryOf(watched.client)) - idle.bytes;
    const merged = await mergedNodes(watched.client);
    for (const one of scenes.splice(0)) await one.stop();

    progress(`${NODES} nodes`, 'figures alone');
    const lonely = await scene('figures');
    scenes.push(lonely);
    await sleep(2 * RUN_MS);
    const figures = await loadOf(lonely.client, () => sleep(RUNS * RUN_MS));

    const added = all!.part - polls!.part;
    const apart = figures.part - idle.part;
    const turn = median(led.map((ms, run) => ms - alone[run]!));
    const caseName = `${NODES} nodes`;
    const row = (contender: string, metric: string, values: readonly number[]): Series => ({
      ...{ case: caseName, contender, metric, values },
    });
    const rows = (contender: string, { part, inCommands, wakeUps }: Load): Series[] => [
      row(contender, '% of a core', [part * 100]),
      row(contender, '% of a core, in commands', [inCommands * 100]),
      row(contender, 'reads a second', [wakeUps]),
    ];
    return {
      series: [
        row('leader', 'p99 of its turns, ms', led),
        row('no leader', 'p99 of its turns, ms', alone),
        ...rows('Redis, idle', idle),
        ...rows('Redis, nodes that poll', polls!),
        ...rows('Redis, with their figures', all!),
        ...rows('Redis, figures alone', figures),
        row('Redis, with their figures', 'MB', [bytes / 2 ** 20]),
      ],
      bars: [
        atLeast(`nodes that the leader has merged ≥ ${NODES}`, merged, NODES),
        atMost(`${caseName}: a turn of the leader ≤ ${MOST_TURN_MS} ms`, turn, MOST_TURN_MS),
        below(
          `${caseName}: figures every 5 s, along with polls, add < 1 % of a core to Redis`,
          ...([added, MOST_PART_OF_CORE] as const),
        ),
        below(
          `${caseName}: figures alone, every 20 s: Redis < 1 % of a core, less that of an idle one`,
          ...([apart, MOST_PART_OF_CORE] as const),
        ),
        below(`${caseName}: Redis < 4 MB`, bytes, MOST_REDIS_BYTES),
      ],
    };
  } finally {
    for (const one of scenes) await one.stop();
  }
}
