import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { createHistogram } from 'node:perf_hooks';
import { LoopDelay, nanosOf, spreadOf, type Spread } from './loop-delay.js';

export interface VitalFigures {
  readonly answers: Spread;
  readonly loopDelay: Spread;
  readonly monitoredLoopDelay: Spread;
}

/** How long answers take, and how late the process itself is. */
@Injectable()
export class Vitals implements OnApplicationShutdown {
  private readonly loop = new LoopDelay();
  private readonly answers = createHistogram();

  /** From when there is something to measure: a process that starts is late all the time. */
  begin(): void {
    this.loop.begin();
  }

  /** Middleware: counts from when the request is there until its answer has been handed over. */
  readonly watch = (_request: Request, response: Response, next: NextFunction): void => {
    const startedAt = performance.now();
    response.once('finish', () => this.answers.record(nanosOf(performance.now() - startedAt)));
    next();
  };

  figures(): VitalFigures {
    const { answers, loop } = this;
    return {
      answers: spreadOf(answers),
      loopDelay: loop.spread(),
      monitoredLoopDelay: loop.monitored(),
    };
  }

  onApplicationShutdown(): void {
    this.loop.end();
  }
}
