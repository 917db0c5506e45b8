import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { createHistogram } from 'node:perf_hooks';
import { LoopDelay, nanosOf, spreadOf, type Spread } from './loop-delay.js';

export interface VitalFigures {
  readonly answers: Spread;
  /** The same, less the time for which the event loop stood still meanwhile. */
  readonly answersInLoop: Spread;
  readonly loopDelay: Spread;
  readonly monitoredLoopDelay: Spread;
}

/** How long answers take, and how late the process itself is. */
@Injectable()
export class Vitals implements OnApplicationShutdown {
  private readonly loop = new LoopDelay();
  private readonly answers = createHistogram();
  private readonly answersInLoop = createHistogram();

  /** From when there is something to measure: a process that starts is late all the time. */
  begin(): void {
    this.loop.begin();
  }

  /** Middleware: counts from when the request is there until its answer has been handed over. */
  readonly watch = (_request: Request, response: Response, next: NextFunction): void => {
    const startedAt = performance.now();
    const lostBefore = this.loop.lostBy(startedAt);
    response.once('finish', () => {
      const now = performance.now();
      this.answers.record(nanosOf(now - startedAt));
      const lostMs = this.loop.lostBy(now) - lostBefore;
      this.answersInLoop.record(nanosOf(now - startedAt - lostMs));
    });
    next();
  };

  figures(): VitalFigures {
    const { answers, answersInLoop, loop } = this;
    return {
      answers: spreadOf(answers),
      answersInLoop: spreadOf(answersInLoop),
      loopDelay: loop.spread(),
      monitoredLoopDelay: loop.monitored(),
    };
  }

  onApplicationShutdown(): void {
    this.loop.end();
  }
}
