import rateLimit from '@fastify/rate-limit';
import { fastify, type FastifyInstance, type FastifyRequest } from 'fastify';
import { type Contender, type ContenderOptions } from '../contender.js';

type Check = ReturnType<FastifyInstance['createRateLimit']>;
type Checked = Awaited<ReturnType<Check>>;

/**
 * `createRateLimit()`, which its documentation offers for use outside of routes. The request is a
 * plain object with the two fields that are read: a real one builds `routeOptions` anew at each
 * read, and that is Fastify's cost, not the limiter's.
 */
class FastifyRateLimit implements Contender<Checked> {
  readonly answers = 'later';

  constructor(
    private readonly app: FastifyInstance,
    private readonly check: Check,
  ) {}

  decide(key: string): Promise<Checked> {
    const request = { headers: { 'x-user': key }, routeOptions: { config: {} } };
    return this.check(request as unknown as FastifyRequest);
  }

  allowed(checked: Checked): boolean {
    return checked.isAllowed || !checked.isExceeded;
  }

  async close(): Promise<void> {
    await this.app.close();
  }
}

export async function createFastifyRateLimit(options: ContenderOptions): Promise<Contender> {
  const app = fastify();
  await app.register(rateLimit, {
    global: false,
    max: options.limit,
    timeWindow: options.periodMs,
    // Its store forgets the least recently used key beyond this many, 5,000 unless told.
    cache: Math.max(5000, options.keys),
    keyGenerator: (request) => request.headers['x-user'] as string,
  });
  await app.ready();
  return new FastifyRateLimit(app, app.createRateLimit());
}
