import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import {
  createHistogram,
  monitorEventLoopDelay,
  type Histogram,
  type RecordableHistogram,
} from 'node:perf_hooks';

/** How often it is looked whether the event loop comes round; a part of what is measured. */
const RESOLUTION_MS = 5;
const NANOS = 1e6;

export interface Spread {
  readonly count: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  readonly p999Ms: number;
  readonly maxMs: number;
}

/** How long answers take, and how late the process itself is. */
@Injectable()
export class Vitals implements OnApplicationShutdown {
  private readonly loop = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  private readonly answers: RecordableHistogram = createHistogram();

  /** From when there is something to measure: a process that starts is late all the time. */
  begin(): void {
    this.loop.enable();
  }

  /** Middleware: counts from when the request is there until its answer has been handed over. */
  readonly watch = (_request: Request, response: Response, next: NextFunction): void => {
    const startedAt = performance.now();
    response.once('finish', () => {
      this.answers.record(Math.max(1, Math.round((performance.now() - startedAt) * NANOS)));
    });
    next();
  };

  figures(): { readonly loopDelay: Spread; readonly answers: Spread } {
    return { loopDelay: spread(this.loop, RESOLUTION_MS), answers: spread(this.answers, 0) };
  }

  onApplicationShutdown(): void {
    this.loop.disable();
  }
}

function spread(histogram: Histogram, lessMs: number): Spread {
  const ms = (nanos: number): number => Math.max(0, Math.round(nanos / 1e5) / 10 - lessMs);
  const { count, max } = histogram;
  if (count === 0) return { count, p50Ms: 0, p99Ms: 0, p999Ms: 0, maxMs: 0 };
  return {
    count,
    p50Ms: ms(histogram.percentile(50)),
    p99Ms: ms(histogram.percentile(99)),
    p999Ms: ms(histogram.percentile(99.9)),
    maxMs: ms(max),
  };
}
