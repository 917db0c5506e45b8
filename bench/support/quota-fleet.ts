import { Redis } from 'ioredis';
import { createRateLimiter, type QuotaOptions, type RateLimiter } from 'nestjs-weir';

export interface FleetOptions {
  readonly nodes: number;
  readonly apps: number;
  /** Whether a node serves one app, as a service does, or all of them, as a gateway does. */
  readonly serves: 'one' | 'all';
  readonly capacity: number;
  /** Per app, tokens per second. */
  readonly guaranteed: number;
  readonly burst: number;
}

/** Some limiters of one process that share a quota through Redis, as nodes of a fleet do. */
export class QuotaFleet {
  allowed = 0;
  denied = 0;
  private readonly overloaded = new Set<RateLimiter>();

  private constructor(
    private readonly client: Redis,
    private readonly limiters: readonly RateLimiter[],
    private readonly options: FleetOptions,
  ) {
    for (const limiter of limiters) {
      limiter.on('overload', ({ overloaded }) => {
        if (overloaded) this.overloaded.add(limiter);
        else this.overloaded.delete(limiter);
      });
    }
  }

  /** True if most nodes say so: each learns of it with its own next call. */
  get isOverloaded(): boolean {
    return this.overloaded.size > this.limiters.length / 2;
  }

  /** One connection for all: what is measured is time in Redis, and that does not count sockets. */
  static async start(url: string, prefix: string, options: FleetOptions): Promise<QuotaFleet> {
    const client = new Redis(url);
    client.setMaxListeners(0);
    const limiters = Array.from({ length: options.nodes }, (_, node) =>
      createRateLimiter({
        nodeId: `node-${node}`,
        // A deadline far above the default: a machine that is short of time must not look like an outage.
        store: { type: 'redis', client, prefix, decisionTimeout: '1s' },
        quota: quotaOf(options),
      }),
    );
    await Promise.all(limiters.map((limiter) => limiter.ready()));
    return new QuotaFleet(client, limiters, options);
  }

  /** The n-th request: each goes to the next node. */
  async ask(n: number): Promise<void> {
    const { nodes, apps, serves } = this.options;
    const node = n % nodes;
    const app = (serves === 'one' ? node : Math.floor(n / nodes)) % apps;
    const answer = this.limiters[node]!.tryAcquire({ app: nameOf(app) });
    const { allowed } = answer instanceof Promise ? await answer : answer;
    if (allowed) this.allowed++;
    else this.denied++;
  }

  async close(): Promise<void> {
    await Promise.all(this.limiters.map((limiter) => limiter.close()));
    this.client.disconnect();
  }
}

function quotaOf({ apps, capacity, guaranteed, burst }: FleetOptions): QuotaOptions {
  const one = (app: number) => ({ guaranteed, burst, priority: (app % 4) as 0 | 1 | 2 | 3 });
  return {
    cluster: { capacity },
    apps: Object.fromEntries(Array.from({ length: apps }, (_, app) => [nameOf(app), one(app)])),
  };
}

function nameOf(app: number): string {
  return `app-${app}`;
}
