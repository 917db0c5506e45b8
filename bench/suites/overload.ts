import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { performance } from 'node:perf_hooks';
import { fileURLToPath } from 'node:url';
import { atLeast, atMost, byBoth } from '../support/bars.js';
import { Load } from '../support/http/load.js';
import { OfferedLoad, TIERS, type Outcome } from '../support/overload/offered-load.js';
import {
  type OverloadReply,
  type OverloadRequest,
  type Usage,
} from '../support/overload/server-main.js';
import { ALONE, type Law, type OverloadServerOptions } from '../support/overload/server.js';
import { inRounds } from '../support/rounds.js';
import { median, medianRatio } from '../support/statistics.js';
import { type Bar, type Series, type Suite, type SuiteContext } from '../support/suite.js';
import { apartIn } from '../support/twins.js';

/** The line has a twin: the distance of two of the same code is the error of a figure. */
const WARM = ['nothing', 'under-pressure style', 'line', 'line again'] as const;
const FRESH = ['nothing', 'line', 'line again'] as const;
const lawOf = (contender: (typeof WARM)[number]): Law =>
  contender === 'line again' ? 'line' : contender;
const FACTOR = 2;
const SECONDS = 5;
const WARM_CONNECTIONS = 900;
const MAIN = fileURLToPath(new URL('../support/overload/server-main.js', import.meta.url));
/** The least part of a core for a run to count: with less, it says more of the server's neighbours than of the server. */
const LEAST_CORE = 0.75;
const MOST_REPEATS = 2;
/** A run takes ten seconds, and there are seven of them in a round. */
const ROUNDS_OF_7 = 3;
/** Bounds for all runs together: a machine that is never quiet is measured as it is, and the table says so. */
const MOST_REPEATS_IN_ALL = 3;
const PATIENCE_IN_ALL_MS = 10_000;

interface Run extends Outcome {
  readonly goodput: number;
  readonly delayP99: number;
  readonly core: number;
}

/** A process of its own, so that its processor time is nobody else's. */
class OverloadServer {
  private constructor(
    private readonly child: ChildProcess,
    readonly url: string,
  ) {}

  static async start(options: OverloadServerOptions): Promise<OverloadServer> {
    const child = fork(MAIN, { stdio: ['ignore', 'ignore', 'inherit', 'ipc'] });
    const reply = await ask(child, { serve: options });
    if (!('url' in reply)) throw new Error(`${options.law}: ${JSON.stringify(reply)}`);
    return new OverloadServer(child, reply.url);
  }

  async usage(): Promise<Usage> {
    const reply = await ask(this.child, 'usage');
    if (!('cpuMicros' in reply)) throw new Error(JSON.stringify(reply));
    return reply;
  }

  async switchLine(isLineOn: boolean): Promise<void> {
    const reply = await ask(this.child, { isLineOn });
    if (!('url' in reply)) throw new Error(JSON.stringify(reply));
  }

  async stop(): Promise<void> {
    const exited = once(this.child, 'exit');
    this.child.kill('SIGKILL');
    await exited;
  }
}

async function ask(child: ChildProcess, request: OverloadRequest): Promise<OverloadReply> {
  const replied = once(child, 'message') as Promise<[OverloadReply]>;
  child.send(request);
  return (await replied)[0];
}

export const overload: Suite = {
  name: 'overload',
  about:
    'a server with twice the requests that it can serve: nothing, under-pressure style, the line',

  async run(context) {
    let [leftOut, disturbed] = [0, 0];
    const quiet = new QuietMachine(PATIENCE_IN_ALL_MS);
    const measureOnce = async (
      contender: (typeof WARM)[number],
      connections: number,
    ): Promise<Run> => {
      for (let repeats = 0; ; repeats++) {
        await quiet.wait();
        const run = await measure(lawOf(contender), connections);
        if (run.core >= LEAST_CORE) return run;
        if (repeats >= MOST_REPEATS || leftOut >= MOST_REPEATS_IN_ALL) {
          disturbed++;
          return run;
        }
        leftOut++;
      }
    };
    const rounds = Math.max(ROUNDS_OF_7, Math.round((context.rounds * ROUNDS_OF_7) / 7));
    const warm = await inRounds(WARM, rounds, (contender, round) => {
      context.progress('warm connections', `${contender}, round ${round + 1}`);
      return measureOnce(contender, WARM_CONNECTIONS);
    });
    const fresh = await inRounds(FRESH, rounds, (contender, round) => {
      context.progress('new connections', `${contender}, round ${round + 1}`);
      return measureOnce(contender, 0);
    });
    const costs = await refusalCosts(context);
    const passing = await passingCost(context);
    const series = [
      ...seriesOf(`${FACTOR}×, warm connections`, warm),
      ...seriesOf(`${FACTOR}×, new connections`, fresh),
      ...costs.series,
      ...passing.series,
    ];
    return {
      series,
      bars: [...barsOf(warm, fresh), ...costs.bars, ...passing.bars],
      notes: [
        `Capacity is 1 s / processor time of an answer of the same process just before. ${leftOut} runs in which the server had less than ${LEAST_CORE} of a core were repeated, ${disturbed} of those below were like that.`,
        'Goodput by CPU: the part of the processor time that went into answers within 250 ms.',
      ],
    };
  },
};

async function measure(law: Law, connections: number): Promise<Run> {
  const server = await OverloadServer.start({ platform: 'fastify', law });
  try {
    const perAnswer = await cpuPerAnswer(server);
    const load = await OfferedLoad.on(server.url, connections);
    const before = await server.usage();
    const begun = performance.now();
    const perSecond = (FACTOR * 1e6) / perAnswer;
    const sending = load.send({ perSecond, seconds: SECONDS, connections });
    await new Promise((resolve) => setTimeout(resolve, (SECONDS + 1) * 1000));
    const after = await server.usage();
    const wallMicros = (performance.now() - begun) * 1000;
    const outcome = await sending;
    load.close();
    const cpuMicros = after.cpuMicros - before.cpuMicros;
    // The first second is part of the processor time and not of the answers.
    const counted = (cpuMicros * SECONDS) / (SECONDS + 1);
    return {
      ...outcome,
      goodput: (outcome.inTime * perAnswer) / counted,
      delayP99: after.delayP99,
      core: cpuMicros / wallMicros,
    };
  } finally {
    await server.stop();
  }
}

/** Requests go one after the other, so that none waits for another. */
async function cpuPerAnswer(server: OverloadServer): Promise<number> {
  const load = await Load.on(server.url, 1, `/${ALONE}`);
  try {
    await load.send(50);
    const before = await server.usage();
    const sent = await load.send(150);
    return ((await server.usage()).cpuMicros - before.cpuMicros) / sent;
  } finally {
    load.close();
  }
}

/** Spins for 150 ms, and waits until it got nearly all of a core; in all runs together no longer than it has patience. */
class QuietMachine {
  constructor(private patienceMs: number) {}

  async wait(): Promise<void> {
    for (;;) {
      const before = process.cpuUsage();
      const begun = performance.now();
      while (performance.now() - begun < 150);
      const { user, system } = process.cpuUsage(before);
      if ((user + system) / 1000 / (performance.now() - begun) > 0.9) return;
      if (this.patienceMs <= 0) return;
      this.patienceMs -= 500;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
  }
}

function seriesOf(caseName: string, runs: ReadonlyMap<string, readonly Run[]>): Series[] {
  const metrics: readonly (readonly [string, (run: Run) => number])[] = [
    ['goodput by CPU', ({ goodput }) => goodput],
    ['of a core', ({ core }) => core],
    ['p50, ms', ({ latencies }) => latencies[Math.floor(latencies.length * 0.5)] ?? NaN],
    ['p99, ms', ({ latencies }) => latencies[Math.floor(latencies.length * 0.99)] ?? NaN],
    ['loop delay p99, ms', ({ delayP99 }) => delayP99],
    ['no answer in 2 s', ({ unanswered, sent }) => unanswered / sent],
    ...TIERS.map(
      (tier) => [`${tier} served in time`, ({ servedByTier }: Run) => servedByTier[tier]] as const,
    ),
  ];
  return metrics.flatMap(([metric, read]) =>
    [...runs].map(([contender, all]) => ({
      ...{ case: caseName, contender, metric },
      values: all.map(read),
    })),
  );
}

type Runs = ReadonlyMap<string, readonly Run[]>;

/** True if most of the runs had less of a core: the figures are those of the neighbours as well. */
const isDisturbed = (runs: readonly Run[]): boolean =>
  median(runs.map(({ core }) => core)) < LEAST_CORE;

const unansweredOf = ({ unanswered, sent }: Run): number => unanswered / sent;

function barsOf(warm: Runs, fresh: Runs): Bar[] {
  const of = (runs: Runs, contender: string, read: (run: Run) => number): number =>
    median(runs.get(contender)!.map(read));
  /** The bar of both contenders that have the line. */
  const bar = (
    runs: Runs,
    kind: typeof atLeast | typeof atMost,
    promise: string,
    read: (run: Run) => number,
    bound: number,
  ): Bar => {
    const [one, again] = ['line', 'line again'].map((contender) =>
      kind(promise, of(runs, contender, read), bound),
    );
    const disturbed = isDisturbed([...runs.get('line')!, ...runs.get('line again')!]);
    return byBoth(one!, again!, disturbed);
  };
  const delayWithout = of(warm, 'nothing', ({ delayP99 }) => delayP99);
  return [
    bar(warm, atLeast, 'goodput by CPU, line ≥ 0.85', ({ goodput }) => goodput, 0.85),
    bar(warm, atMost, 'loop delay p99, line ≤ 60 ms', ({ delayP99 }) => delayP99, 60),
    bar(
      ...([warm, atLeast, 'loop delay p99, nothing ≥ 10 × line'] as const),
      ...([({ delayP99 }: Run) => delayWithout / delayP99, 10] as const),
    ),
    bar(warm, atLeast, 'S served in time, line ≥ 0.95', ({ servedByTier: { S } }) => S, 0.95),
    bar(warm, atMost, 'C served in time, line ≤ 0.25', ({ servedByTier: { C } }) => C, 0.25),
    atMost(
      'goodput by CPU, nothing ≤ 0.10',
      of(warm, 'nothing', ({ goodput }) => goodput),
      0.1,
    ),
    bar(warm, atMost, 'no answer, line ≤ 1 %', unansweredOf, 0.01),
    bar(fresh, atMost, 'no answer on new connections, line ≤ 1 %', unansweredOf, 0.01),
  ];
}

const METRIC = 'CPU of a request, µs';
const PASSES = 'cost of passing the line';

function rowsOf(
  caseName: string,
  costs: ReadonlyMap<string, readonly number[]>,
  baseline?: readonly number[],
): Series[] {
  return Array.from(costs, ([contender, values]) => {
    return { case: caseName, contender, metric: METRIC, values, baseline };
  });
}

const COST_REQUESTS = 3000;
/** A block takes a quarter of a second. */
const COST_ROUNDS = 15;
const MOST_OF_EMPTY = { fastify: 0.75, express: 0.3 } as const;

/** The empty route has a twin on another server: the distance of the two is the error of the ratio. */
const EMPTY_AND_REFUSED = ['empty route', 'empty route again', 'refusal'] as const;

/** Processor time of a refusal beside that of an empty route of the same framework, both warm. */
async function refusalCosts({ progress }: SuiteContext) {
  const series: Series[] = [];
  const bars: Bar[] = [];
  for (const platform of ['fastify', 'express'] as const) {
    progress('cost', platform);
    const open = await OverloadServer.start({ platform, law: 'nothing' });
    const again = await OverloadServer.start({ platform, law: 'nothing' });
    const shut = await OverloadServer.start({ platform, law: 'line', isShut: true });
    const holds = [fetch(`${shut.url}/hold`), fetch(`${shut.url}/hold`)].map((one) =>
      one.catch(() => undefined),
    );
    try {
      const costs = await inRounds(EMPTY_AND_REFUSED, COST_ROUNDS, (what) =>
        what === 'refusal'
          ? costOf(shut, '/empty', 503)
          : costOf(what === 'empty route' ? open : again, '/empty', 200),
      );
      const [empty, refusal] = [costs.get('empty route')!, costs.get('refusal')!];
      const caseName = `cost on ${platform}`;
      const rows = rowsOf(caseName, costs, empty);
      series.push(...rows);
      const bound = MOST_OF_EMPTY[platform];
      bars.push(
        atMost(
          `${platform}: a refusal ≤ ${bound} × an empty route, CPU`,
          medianRatio(refusal, empty),
          bound,
          apartIn(rows, caseName, METRIC),
        ),
      );
    } finally {
      await Promise.all([open.stop(), again.stop(), shut.stop()]);
      await Promise.all(holds);
    }
  }
  return { series, bars };
}

const PASSING = 'a request that passes the line ≤ 1.02 × one without, CPU';
/** One process, in which the line is switched on and off: two processes of one code differ by more than the line costs. */
const SWITCHED = ['line off', 'line off again', 'line on'] as const;
const PASSING_REQUESTS = 500;
const PASSING_WARM_UP = 20_000;
const PASSING_ROUNDS = 300;
/** The bar is 2 %, so twins must be nearer than usual. */
const PASSING_MOST_APART = 0.01;

/** An empty Fastify route, one request after the other: each is alone in its turn, which is the dearest that the line can be. */
async function passingCost({ progress }: SuiteContext) {
  progress('cost', 'a request that passes');
  const server = await OverloadServer.start({ platform: 'fastify', law: 'line' });
  const load = await Load.on(server.url, 1, '/empty');
  try {
    const cost = async (what: (typeof SWITCHED)[number], requests: number): Promise<number> => {
      await server.switchLine(what === 'line on');
      await load.send(requests / 10);
      const before = await server.usage();
      const sent = await load.send(requests);
      return ((await server.usage()).cpuMicros - before.cpuMicros) / sent;
    };
    for (const what of SWITCHED) await cost(what, PASSING_WARM_UP);
    const taken = await inRounds(
      SWITCHED,
      PASSING_ROUNDS,
      (what) => cost(what, PASSING_REQUESTS),
      (rows) => apartIn(rowsOf(PASSES, rows), PASSES, METRIC) <= PASSING_MOST_APART,
    );
    const series = rowsOf(PASSES, taken, taken.get('line off'));
    const ratio = medianRatio(taken.get('line on')!, taken.get('line off')!);
    const apart = apartIn(series, PASSES, METRIC);
    return { series, bars: [atMost(PASSING, ratio, 1.02, apart, PASSING_MOST_APART)] };
  } finally {
    load.close();
    await server.stop();
  }
}

async function costOf(server: OverloadServer, path: string, status: number): Promise<number> {
  const load = await Load.on(server.url, undefined, path, status);
  try {
    await load.send(COST_REQUESTS / 10);
    const before = await server.usage();
    const sent = await load.send(COST_REQUESTS);
    return ((await server.usage()).cpuMicros - before.cpuMicros) / sent;
  } finally {
    load.close();
  }
}
