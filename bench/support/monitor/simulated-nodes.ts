import { Redis } from 'ioredis';
import { readFileSync } from 'node:fs';

const PREFIX = 'weir';
const CONFIG = `${PREFIX}:{config}:current`;
const ORDERS = `${PREFIX}:{config}:orders`;

/**
 * The calls of the nodes: they read the configuration every 5 s, as every process does; their figures go along with that; or
 * figures alone, every 20 s, as of nodes that read it seldom.
 */
export type Saying = 'polls' | 'polls and figures' | 'figures';

const PERIOD_MS: Readonly<Record<Saying, number>> = {
  ...{ polls: 5000, 'polls and figures': 5000, figures: 20_000 },
};
const KEPT_MS = 60_000;

interface Wire {
  node: string;
  series: [number, string, number[], ...unknown[]][];
}

/**
 * Processes that are none: each sends what a real one does, with counts that grow. One after the other, as nodes
 * that know nothing of each other.
 */
export class SimulatedNodes {
  private readonly client: Redis;
  /** The record of the configuration that all of them have. */
  private known = '';
  private timer: NodeJS.Timeout | undefined;
  private next = 0;
  private written = 0;

  constructor(
    url: string,
    private readonly count: number,
    private readonly text: string,
    private readonly saying: Saying,
  ) {
    this.client = new Redis(url);
    const lua = readFileSync(new URL('../../../../lua/config-read.lua', import.meta.url), 'utf8');
    this.client.defineCommand('weirConfigRead', { lua, numberOfKeys: 2 });
  }

  async begin(): Promise<void> {
    if (this.saying !== 'polls') await this.appear();
    this.known = (await this.client.hget(CONFIG, 'id')) ?? '';
    const begun = performance.now();
    this.written = 0;
    this.timer = setInterval(() => {
      const due = ((performance.now() - begun) * this.count) / PERIOD_MS[this.saying];
      // Those that a busy machine has kept back come one by one as well: each wakes Redis.
      if (this.written >= due) return;
      void this.turn(this.next).catch(() => {});
      this.next = (this.next + 1) % this.count;
      this.written++;
    }, 1);
  }

  end(): void {
    clearInterval(this.timer);
    this.client.disconnect();
  }

  /** All of them are there from the beginning. */
  private async appear(): Promise<void> {
    const names = Array.from({ length: this.count }, (_, i) => nameOf(i));
    await this.client.hset(
      `${PREFIX}:{monitor}:nodes`,
      Object.fromEntries(names.map((name) => [name, '1'])),
    );
    for (let i = 0; i < this.count; i++) await this.figures(i);
  }

  /** Sends all in one write, as processes do. */
  private async turn(place: number): Promise<void> {
    const { stream } = this.client;
    stream.cork();
    const sent: Promise<unknown>[] = [];
    if (this.saying !== 'figures') sent.push(this.poll());
    if (this.saying !== 'polls') sent.push(this.figures(place));
    stream.uncork();
    await Promise.all(sent);
  }

  private poll(): Promise<unknown> {
    const { weirConfigRead } = this.client as unknown as {
      weirConfigRead(...args: readonly string[]): Promise<unknown>;
    };
    return weirConfigRead.call(this.client, CONFIG, ORDERS, this.known, '1');
  }

  private figures(place: number): Promise<unknown> {
    const wire = JSON.parse(this.text) as Wire;
    wire.node = nameOf(place);
    for (const [, , counts] of wire.series) counts[0]! += this.written;
    return Promise.all([
      this.client.mget(`${PREFIX}:{monitor}:lead`, `${PREFIX}:{monitor}:watch`),
      this.client.set(`${PREFIX}:mon:${wire.node}`, JSON.stringify(wire), 'PX', KEPT_MS),
    ]);
  }
}

const nameOf = (place: number): string => `simulated-${place}`;

/** The record that a real process has written of itself. */
export async function snapshotOf(client: Redis, nodeId: string): Promise<string> {
  for (let tries = 0; tries < 100; tries++) {
    const text = await client.get(`${PREFIX}:mon:${nodeId}`);
    if (text !== null) return text;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${nodeId} has written nothing`);
}

/** The number of nodes that were merged last. */
export async function mergedNodes(client: Redis): Promise<number> {
  const text = await client.get(`${PREFIX}:{monitor}:merged`);
  return text === null ? 0 : (JSON.parse(text) as { nodeCount: number }).nodeCount;
}
