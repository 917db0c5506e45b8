import { readFileSync } from 'node:fs';
import { Redis } from 'ioredis';
import { atMost } from '../../support/bars.js';
import { type Load, underLoad } from '../../support/paced-load.js';
import { type FleetOptions, QuotaFleet } from '../../support/quota-fleet.js';
import { withRedisUsage } from '../../support/redis-usage.js';
import { inRounds } from '../../support/rounds.js';
import { medianRatio } from '../../support/statistics.js';
import { type Bar, type Series, type SuiteContext, type SuiteReport } from '../../support/suite.js';
import { type OnRedis } from './shared-decisions.js';

/** Something that makes Redis run a script again and again. */
interface Subject {
  readonly label: string;
  readonly perSecond: number;
  open(): Promise<Opened>;
}

interface Opened {
  ask(n: number): Promise<unknown>;
  /** Throws if the load was another than the label says. */
  check(): void;
  close(): void | Promise<void>;
}

interface FleetCase extends Omit<FleetOptions, 'nodes'> {
  readonly expect: 'granted' | 'overloaded' | 'scarce';
}

interface Measurement {
  readonly microsPerCall: number;
  readonly callsPerSecond: number;
}

const CASE = 'Redis time of a script';
const METRIC = 'Redis µs/call';
const PLAIN = 'plain token bucket';
const PACKED = 'plain token bucket, packed';

const NODES = 20;
const DECISIONS_PER_SECOND = 20_000;
/** Calls about as often as the nodes above, so that caches are as cold and timers as late. */
const PLAIN_CALLS_PER_SECOND = 400;

const WARM_UP_MS = 300;
const MEASURED_MS = 500;

const WITHIN = { serves: 'one', capacity: 200_000, expect: 'granted' } as const;
const FIVE: FleetCase = { ...WITHIN, apps: 5, guaranteed: 36_000, burst: 72_000 };
const TWENTY: FleetCase = { ...WITHIN, apps: 20, guaranteed: 9_000, burst: 18_000 };

const FLEETS: Readonly<Record<string, FleetCase>> = {
  'weir, 5 apps': FIVE,
  'weir, 20 apps': TWENTY,
  'weir, 5 apps, a call names all': { ...FIVE, serves: 'all' },
  'weir, 20 apps, a call names all': { ...TWENTY, serves: 'all' },
  'weir, 20 apps, beyond the guarantee': { ...TWENTY, guaranteed: 100 },
  'weir, 20 apps, scarce': { ...TWENTY, guaranteed: 100, burst: 200, expect: 'scarce' },
  'weir, 20 apps, overloaded': {
    ...{ ...TWENTY, capacity: 8_000, guaranteed: 250, burst: 4_000 },
    expect: 'overloaded',
  },
};

/** The bar, as a multiple of the plain bucket's time. */
const BOUNDS: Readonly<Record<string, number>> = { 'weir, 5 apps': 3, 'weir, 20 apps': 6 };

export async function scriptTime(
  { url, observer }: OnRedis,
  context: SuiteContext,
): Promise<SuiteReport> {
  const subjects = [
    bucket(url, PLAIN, 'plain-bucket', [1e6, 2e5, 50]),
    bucket(url, PACKED, 'packed-bucket', [1e6, 2e11, 5e7]),
    ...Object.entries(FLEETS).map(([label, fleetCase]) => fleet(url, label, fleetCase)),
  ];
  const taken = await inRounds(subjects, context.rounds, (subject, round) => {
    context.progress(CASE, `round ${round + 1} of ${context.rounds}, ${subject.label}`);
    return measure(subject, observer);
  });
  return reportOf(new Map([...taken].map(([{ label }, values]) => [label, values])));
}

/** Nodes are opened for each measurement: idle ones go on giving back for a while, and would be counted. */
async function measure({ perSecond, open }: Subject, observer: Redis): Promise<Measurement> {
  const load: Load = { perSecond, durationMs: MEASURED_MS, graceMs: 0 };
  const opened = await open();
  try {
    const ask = (n: number): Promise<unknown> => opened.ask(n);
    await underLoad({ ...load, durationMs: WARM_UP_MS }, ask);
    const { usage } = await withRedisUsage(observer, () => underLoad(load, ask));
    opened.check();
    return {
      microsPerCall: usage.scriptMicros / usage.scriptCalls,
      callsPerSecond: (usage.scriptCalls * 1000) / MEASURED_MS,
    };
  } finally {
    await opened.close();
  }
}

function bucket(url: string, label: string, script: string, limits: readonly number[]): Subject {
  const open = async (): Promise<Opened> => {
    const client = new Redis(url);
    const digest = String(await client.script('LOAD', sourceOf(script)));
    return {
      ask: (n) => client.evalsha(digest, 1, `${script}:${n % NODES}`, ...limits),
      check: () => {},
      close: () => client.disconnect(),
    };
  };
  return { label, perSecond: PLAIN_CALLS_PER_SECOND, open };
}

/** The text of a script of the bench: only the library's own scripts lie where compiled code looks for them. */
function sourceOf(script: string): string {
  return readFileSync(new URL(`../../../../bench/support/${script}.lua`, import.meta.url), 'utf8');
}

function fleet(url: string, label: string, fleetCase: FleetCase): Subject {
  const prefix = label.replaceAll(/\W+/g, '-');
  const open = async (): Promise<Opened> => {
    const nodes = await QuotaFleet.start(url, prefix, { ...fleetCase, nodes: NODES });
    return {
      ask: (n) => nodes.ask(n),
      check: () => assertExpected(label, fleetCase.expect, nodes),
      close: () => nodes.close(),
    };
  };
  return { label, perSecond: DECISIONS_PER_SECOND, open };
}

/** The script does other things in each case: a mix of cases would be the time of none. */
function assertExpected(label: string, expect: FleetCase['expect'], fleet: QuotaFleet): void {
  const { allowed, denied, isOverloaded } = fleet;
  const share = denied / (allowed + denied);
  const found = isOverloaded ? 'overloaded' : share > 0.1 ? 'scarce' : 'granted';
  if (found !== expect) {
    throw new Error(
      `${label}: was to be ${expect}, was ${found} (${denied} of ${allowed + denied} denied)`,
    );
  }
}

function reportOf(taken: ReadonlyMap<string, readonly Measurement[]>): SuiteReport {
  const valuesOf = (label: string, figure: keyof Measurement): number[] =>
    (taken.get(label) ?? []).map((measurement) => measurement[figure]);
  const seriesOf = (
    caseName: string,
    labels: readonly string[],
    figure: keyof Measurement,
    metric: string,
    baseline?: string,
  ): Series[] =>
    labels.map((label) => ({
      ...{ case: caseName, contender: label, metric, values: valuesOf(label, figure) },
      baseline: baseline === undefined ? undefined : valuesOf(baseline, figure),
    }));
  const labels = [...taken.keys()];
  const bars: Bar[] = Object.entries(BOUNDS).map(([label, bound]) => {
    const plain = valuesOf(PLAIN, 'microsPerCall');
    const ratio = medianRatio(valuesOf(label, 'microsPerCall'), plain);
    return atMost(`${label} ≤ ${bound} × ${PLAIN}, ${METRIC}`, ratio, bound);
  });
  return {
    series: [
      ...seriesOf(CASE, labels, 'microsPerCall', METRIC, PLAIN),
      ...seriesOf(CASE, labels, 'callsPerSecond', 'calls/s'),
      ...seriesOf(`${CASE}, to a packed one`, labels, 'microsPerCall', METRIC, PACKED),
    ],
    bars,
    notes: [
      'A plain bucket makes one decision per call; a lease is good for as many as the table of calls says.',
    ],
  };
}
