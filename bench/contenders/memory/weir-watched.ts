import { Module, type INestApplicationContext, type Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { RateLimiter, RateLimitModule, type Decision } from 'nestjs-weir';
import { type Contender, type ContenderOptions } from '../contender.js';
import { weirPolicy } from '../weir-policy.js';

type Answer = Decision | Promise<Decision>;

/** The limiter of an application, with its monitor or without. */
class WeirOfApplication implements Contender<Answer> {
  readonly answers = 'at once';

  constructor(
    private readonly app: INestApplicationContext,
    private readonly limiter = app.get(RateLimiter),
  ) {}

  decide(key: string): Answer {
    return this.limiter.tryAcquire({ policy: 'api', key, cost: 1 });
  }

  allowed(answer: Answer): boolean {
    if (answer instanceof Promise) throw new Error('the memory store answered with a promise');
    return answer.allowed;
  }

  close(): Promise<void> {
    return this.app.close();
  }
}

async function create(options: ContenderOptions, monitor: object | false): Promise<Contender> {
  class BenchModule {}
  const policies = { api: { ...weirPolicy(options), key: 'global' as const } };
  Module({ imports: [RateLimitModule.forRoot({ policies, monitor })] })(BenchModule);
  const app = await NestFactory.createApplicationContext(BenchModule as Type, { logger: false });
  return new WeirOfApplication(app);
}

export const createWatched = (options: ContenderOptions): Promise<Contender> => create(options, {});

export const createUnwatched = (options: ContenderOptions): Promise<Contender> =>
  create(options, false);
