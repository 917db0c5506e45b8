import { Module, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Protection, RateLimiter, RateLimitModule, RateLimitMonitor } from 'nestjs-weir';
import { ManualClock, settle } from 'nestjs-weir/testing';
import { settledBytes } from '../settled-bytes.js';

/** A figure of one process's monitor, without a store and on a clock that is moved by hand. */
export type Figure = 'tick' | 'scrape' | 'memory';

const WARM_UP = 150;
const TICKS = 300;
const SCRAPES = 100;
/** Time for rules to learn what is usual, and for all rings to have data. */
const MINUTES_BEFORE = 8;
const MINUTES = 10;
const PER_SECOND = 10_000;

interface Names {
  readonly policies: number;
  readonly apps: number;
  readonly resources: number;
}

/** More than a hundred series, and more names than there may be metrics of. */
const MANY: Names = { policies: 100, apps: 20, resources: 30 };

class WatchedApp {
  readonly monitor: RateLimitMonitor;
  private readonly limiter: RateLimiter;
  private readonly protection: Protection;

  private constructor(
    private readonly app: INestApplicationContext,
    readonly clock: ManualClock,
    private readonly names: Names,
  ) {
    this.monitor = app.get(RateLimitMonitor);
    this.limiter = app.get(RateLimiter);
    this.protection = app.get(Protection);
  }

  static async start(names: Names): Promise<WatchedApp> {
    const clock = new ManualClock(0);
    const list = (count: number, name: string): string[] =>
      Array.from({ length: count }, (_, i) => `${name}-${i}`);
    const each = <T>(all: readonly string[], value: T): Record<string, T> =>
      Object.fromEntries(all.map((name) => [name, value]));
    class BenchModule {}
    Module({
      imports: [
        RateLimitModule.forRoot({
          ...{ clock, app: 'app-0' },
          policies: each(list(names.policies, 'policy'), { rate: 100, key: 'global' } as const),
          quota: {
            cluster: { capacity: 1_000_000 },
            apps: each(list(names.apps, 'app'), { guaranteed: 1000 }),
          },
          protection: each(list(names.resources, 'resource'), { breaker: {} }),
          monitor: { maxSeries: 1000 },
        }),
      ],
    })(BenchModule);
    const app = await NestFactory.createApplicationContext(BenchModule as Type, {
      ...{ logger: false, abortOnError: false },
    });
    return new WatchedApp(app, clock, names);
  }

  /** A little of everything, so that every series has counted. */
  async use(): Promise<void> {
    const { limiter, protection, names } = this;
    for (let i = 0; i < names.policies; i++) {
      for (let n = 0; n < 5; n++) void limiter.tryAcquire({ policy: `policy-${i}`, key: 'k' });
    }
    for (let i = 0; i < names.apps; i++) void limiter.tryAcquire({ app: `app-${i}` });
    for (let i = 0; i < names.resources; i++) await protection.run(`resource-${i}`, () => 'done');
  }

  decide(times: number): void {
    const { limiter } = this;
    for (let n = 0; n < times; n++)
      void limiter.tryAcquire({ policy: 'policy-0', key: `${n % 100}` });
  }

  /** One second later; the processor time that took, in milliseconds. */
  async second(): Promise<number> {
    const before = process.cpuUsage();
    this.clock.advance(1000);
    const { user, system } = process.cpuUsage(before);
    await settle();
    return (user + system) / 1000;
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

export async function figuresOf(figure: Figure): Promise<Record<string, readonly number[]>> {
  const app = await WatchedApp.start(MANY);
  try {
    if (figure === 'tick') return await ticks(app);
    return figure === 'scrape' ? await scrapes(app) : await memory(app);
  } finally {
    await app.close();
  }
}

/** An application with alerts, whose rules know by then what is usual. */
async function ticks(app: WatchedApp): Promise<Record<string, readonly number[]>> {
  for (let second = 0; second < Math.max(WARM_UP, MINUTES_BEFORE * 60); second++) {
    await app.use();
    await app.second();
  }
  const ms: number[] = [];
  for (let tick = 0; tick < TICKS; tick++) {
    await app.use();
    ms.push(await app.second());
  }
  return { ms, series: [app.monitor.state().series.length] };
}

async function scrapes(app: WatchedApp): Promise<Record<string, readonly number[]>> {
  await app.use();
  await app.second();
  const ms: number[] = [];
  let lines = 0;
  for (let scrape = 0; scrape < WARM_UP + SCRAPES; scrape++) {
    await app.use();
    const before = process.cpuUsage();
    const text = app.monitor.text();
    const { user, system } = process.cpuUsage(before);
    if (scrape >= WARM_UP) ms.push((user + system) / 1000);
    lines = text.split('\n').filter((line) => line !== '' && !line.startsWith('#')).length;
  }
  return { ms, lines: [lines] };
}

/** Bytes at the end of each minute. */
async function memory(app: WatchedApp): Promise<Record<string, readonly number[]>> {
  const bytes: number[] = [];
  for (let second = 1; second <= MINUTES * 60; second++) {
    if (second % 10 === 1) await app.use();
    app.decide(PER_SECOND);
    await app.second();
    if (second % 60 === 0) bytes.push(settledBytes());
  }
  return { bytes };
}
