import { type INestApplicationContext } from '@nestjs/common';
import { RateLimiter, type Decision } from 'nestjs-weir';
import { startViewed } from '../../support/dashboard/viewed-app.js';
import { type Contender, type ContenderOptions } from '../contender.js';
import { weirPolicy } from '../weir-policy.js';

type Answer = Decision | Promise<Decision>;

/** The limiter of an application; the loop turns between decisions, so that frames are made and sent meanwhile. */
class WeirInTurns implements Contender<Answer> {
  readonly answers = 'at once or later';
  private readonly limiter: RateLimiter;

  constructor(
    app: INestApplicationContext,
    readonly close: () => Promise<void>,
  ) {
    this.limiter = app.get(RateLimiter);
  }

  decide(key: string): Answer {
    return this.limiter.tryAcquire({ policy: 'api', key, cost: 1 });
  }

  allowed(answer: Answer): boolean {
    return !(answer instanceof Promise) && answer.allowed;
  }
}

const VIEWERS = 100;

async function create(
  options: ContenderOptions,
  monitor: object | false,
  viewers: number,
): Promise<Contender> {
  const policies = { api: { ...weirPolicy(options), key: 'global' as const } };
  const { app, close } = await startViewed({ policies, monitor }, viewers);
  return new WeirInTurns(app, close);
}

export const createViewed = (options: ContenderOptions): Promise<Contender> =>
  create(options, {}, VIEWERS);

export const createUnseen = (options: ContenderOptions): Promise<Contender> =>
  create(options, false, 0);
