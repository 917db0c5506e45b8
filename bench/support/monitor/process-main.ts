// A process with one application whose monitor is measured.
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { Module, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimiter, RateLimitModule } from 'nestjs-weir';
import { figuresOf, type Figure } from './figures.js';

export interface NodeOptions {
  readonly url: string;
  readonly nodeId: string;
  /** True if the process shares its figures, and so may merge those of all. */
  readonly fleet: boolean;
}

export type MonitorRequest =
  | { readonly figure: Figure }
  | { readonly serve: NodeOptions }
  | 'begin'
  | 'turns';

/** Milliseconds of the loop's turns since `begin`. */
export interface Turns {
  readonly p99: number;
  readonly max: number;
}

export type MonitorReply =
  | { readonly figures: Record<string, readonly number[]> }
  | { readonly turns: Turns }
  | 'done'
  | { readonly failed: string };

let delay: IntervalHistogram | undefined;

async function answer(request: MonitorRequest): Promise<MonitorReply> {
  if (request === 'begin') {
    delay ??= monitorEventLoopDelay({ resolution: 1 });
    delay.enable();
    delay.reset();
    return 'done';
  }
  if (request === 'turns') {
    return { turns: { p99: delay!.percentile(99) / 1e6, max: delay!.max / 1e6 } };
  }
  if ('figure' in request) return { figures: await figuresOf(request.figure) };
  await serve(request.serve);
  return 'done';
}

/** Makes a few decisions, so that its own figures are those of a process in use. */
async function serve({ url, nodeId, fleet }: NodeOptions): Promise<void> {
  class BenchModule {}
  const names = Array.from({ length: 20 }, (_, i) => `policy-${i}`);
  const policies = Object.fromEntries(
    names.map((name) => [name, { rate: 1000, scope: 'node' }] as const),
  );
  const store = { type: 'redis', url } as const;
  Module({
    imports: [RateLimitModule.forRoot({ store, policies, nodeId, monitor: { fleet } })],
  })(BenchModule);
  const app = await NestFactory.createApplicationContext(BenchModule as Type, { logger: false });
  const limiter = app.get(RateLimiter);
  await limiter.ready();
  setInterval(() => {
    for (const policy of names) void limiter.tryAcquire({ policy, key: 'k' });
  }, 100);
}

process.on('message', (request: MonitorRequest) => {
  answer(request)
    .catch((error: unknown): MonitorReply => ({ failed: String(error) }))
    .then((reply) => process.send!(reply))
    .catch(() => process.exit(1));
});
