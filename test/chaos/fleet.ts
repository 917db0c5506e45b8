import { type QuotaOptions, type StoreInput } from 'nestjs-weir';
import { until } from '../support/until.js';
import { usualRate, type Admission } from './admissions.js';
import { LoadProcess } from './load-process.js';
import {
  sharedMicros,
  type ProcessSetup,
  type Standstill,
  type Stream,
  type Totals,
} from './process/protocol.js';
import { StandstillWatch } from './process/standstill.js';

/** Tokens per second of the cluster that these tests share out, and how many it holds at most. */
export const CAPACITY = 2000;
export const DEPTH = 400;
export const PACE_MICROS = 50_000;
export const LEASE_TTL_MICROS = 1_000_000;

export const QUOTA = {
  clusterId: 'chaos',
  cluster: { capacity: CAPACITY },
  apps: {
    // Enough credit, and soon again, for overload to last as long as a test does.
    shop: { guaranteed: 800, burst: 4000, burstDuration: '1s', priority: 0 },
    search: { guaranteed: 600, burst: 4000, burstDuration: '1s', priority: 1 },
  },
  maxCost: 5,
} satisfies QuotaOptions;

/** Tokens per second that all nodes may admit together while Redis is away: 0.9 of the guarantees. */
export const SHARES_PER_SECOND = 0.9 * (QUOTA.apps.shop.guaranteed + QUOTA.apps.search.guaranteed);
/** Tokens that all of them may have saved up for that, in proportion to the cluster's bucket… */
export const SHARES_BURST = (SHARES_PER_SECOND * DEPTH) / CAPACITY;
/** …and what a node may have saved up in any case: the largest request of each app. */
export const SHARE_DEPTH = 2 * QUOTA.maxCost;

/** Spans to try before a fleet is said not to reach a rate, and how long one is. */
const MOST_SPANS = 8;
const SPAN_SECONDS = 1;

/** Several processes on one quota. */
export class Fleet {
  readonly processes: LoadProcess[] = [];
  /** The test's own process, by which proxies pass everything on. */
  private readonly ownWatch = new StandstillWatch();
  private readonly own: Standstill[] = [];

  constructor(
    private readonly store: StoreInput,
    private readonly quota: QuotaOptions = QUOTA,
  ) {}

  /** Starts one process for each load and lets them all begin. */
  async begin(...loads: readonly (readonly Stream[])[]): Promise<LoadProcess[]> {
    const started = await Promise.all(loads.map(() => this.start()));
    for (const [i, one] of started.entries()) one.offer(...loads[i]!);
    return started;
  }

  async start(more: Partial<ProcessSetup> = {}): Promise<LoadProcess> {
    const started = await LoadProcess.start({ quota: this.quota, store: this.store, ...more });
    this.processes.push(started);
    return started;
  }

  get admissions(): Admission[] {
    return this.processes.flatMap(({ admissions }) => admissions);
  }

  /** Lets the load go on, until every process that runs has told of so much more time. */
  async goOn(seconds: number): Promise<void> {
    const goal = sharedMicros() + seconds * 1_000_000;
    await until(() => this.processes.every((one) => !one.isRunning || one.upToMicros >= goal), {
      what: `${seconds} s of load`,
      timeoutMs: seconds * 1000 + 60_000,
    });
  }

  /**
   * Tokens per second in the usual part of a span: of the first in which they are that many, or of the
   * last that was tried. A busy machine gets the load to its rate later.
   */
  async rateOf(least: number): Promise<number> {
    let rate = 0;
    for (let span = 0; span < MOST_SPANS && rate < least; span++) {
      const from = sharedMicros();
      await this.goOn(SPAN_SECONDS);
      rate = usualRate(this.admissions, from, sharedMicros());
    }
    return rate;
  }

  /** For how long at most one of the processes, or the test, stood still in that time: answers were as late. */
  standstillSeconds(from: number, to: number): number {
    this.own.push(...this.ownWatch.take());
    const all = [...this.own, ...this.processes.flatMap(({ standstills }) => standstills)];
    const within = all.filter(
      ({ toMicros, micros }) => toMicros >= from && toMicros - micros <= to,
    );
    return within.reduce((longest, { micros }) => Math.max(longest, micros), 0) / 1_000_000;
  }

  /** Ends all that still run, in order. */
  close(): Promise<Totals[]> {
    this.ownWatch.end();
    const running = this.processes.filter((one) => one.isRunning);
    return Promise.all(running.map((one) => one.close()));
  }
}
