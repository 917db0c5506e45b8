// One process of a fleet whose clock runs ten times as fast; it tells its parent of every alert.
import 'reflect-metadata';
import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Protect, RateLimitModule, type Alert } from 'nestjs-weir';

const TIMES = 10;

/** The same instant in all processes of the fleet: what lasts seconds takes a tenth of that. */
class FastClock {
  constructor(private readonly startMs: number) {}

  now(): number {
    const realMs = performance.timeOrigin + performance.now();
    return (this.startMs + (realMs - this.startMs) * TIMES) * 1000;
  }

  epochMs(nowMicros: number): number {
    return nowMicros / 1000;
  }

  /** How long one waits for an answer of Redis is not a tenth of that. */
  after(delayMs: number, task: () => void): () => void {
    const timer = setTimeout(task, delayMs);
    return () => clearTimeout(timer);
  }

  every(intervalMs: number, task: () => void): () => void {
    const timer = setInterval(task, intervalMs / TIMES);
    return () => clearInterval(timer);
  }

  soon(task: () => void): () => void {
    const immediate = setImmediate(task);
    return () => clearImmediate(immediate);
  }

  random(): number {
    return Math.random();
  }
}

@Injectable()
class Database {
  @Protect('db', { breaker: { minimumCalls: 2, openFor: '1h' } })
  query(): Promise<never> {
    return Promise.reject(new Error('away'));
  }
}

const [nodeId = '', url = '', startMs = ''] = process.argv.slice(2);
const send = (alerts: readonly Alert[]): void => void process.send!(alerts);

@Module({
  imports: [
    RateLimitModule.forRoot({
      ...{ nodeId, service: 'shop', clock: new FastClock(Number(startMs)) },
      store: { type: 'redis', url },
      alerts: { states: { breakerOpen: { after: '5s' } } },
      monitor: { sinks: [{ send }] },
    }),
  ],
  providers: [Database],
})
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
const database = app.get(Database);
for (let call = 0; call < 4; call++) await database.query().catch(() => {});
process.on('disconnect', () => process.exit());
