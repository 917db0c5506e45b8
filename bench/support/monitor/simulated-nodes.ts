import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { root } from '../../../test/setup/ensure-built.js';

const PREFIX = 'weir';
const KEPT_MS = 15_000;
const TERM_MS = 5000;
/** Each node writes once in so long, whoever looks. */
const PERIOD_MS = 5000;

interface Wire {
  node: string;
  series: [number, string, number[], ...unknown[]][];
}

/**
 * Processes that are none: each writes what a real one has written, with counts that grow, asks whether anybody looks,
 * and would lead if nobody did. One after the other, as nodes that know nothing of each other.
 */
export class SimulatedNodes {
  private readonly client: Redis;
  private readonly script = readFileSync(join(root, 'lua/hold-lease.lua'), 'utf8');
  private sha = '';
  private timer: NodeJS.Timeout | undefined;
  private next = 0;
  private written = 0;

  constructor(
    url: string,
    private readonly count: number,
    private readonly text: string,
  ) {
    this.client = new Redis(url);
  }

  async begin(): Promise<void> {
    this.sha = (await this.client.script('LOAD', this.script)) as string;
    const names = Array.from({ length: this.count }, (_, i) => nameOf(i));
    await this.client.hset(
      `${PREFIX}:{monitor}:nodes`,
      Object.fromEntries(names.map((name) => [name, '1'])),
    );
    // All of them are there from the beginning.
    for (let i = 0; i < this.count; i++) await this.turn(i);
    const begun = performance.now();
    this.written = 0;
    this.timer = setInterval(() => {
      const due = ((performance.now() - begun) * this.count) / PERIOD_MS;
      while (this.written < due) {
        void this.turn(this.next).catch(() => {});
        this.next = (this.next + 1) % this.count;
        this.written++;
      }
    }, 1);
  }

  end(): void {
    clearInterval(this.timer);
    this.client.disconnect();
  }

  private async turn(place: number): Promise<void> {
    const wire = JSON.parse(this.text) as Wire;
    wire.node = nameOf(place);
    for (const [, , counts] of wire.series) counts[0]! += this.written;
    const { client } = this;
    // One after the other, without waiting, as processes do it.
    await Promise.all([
      client.get(`${PREFIX}:{monitor}:watch`),
      client.evalsha(this.sha, 1, `${PREFIX}:{monitor}:lead`, wire.node, TERM_MS, '1'),
      client.set(`${PREFIX}:mon:${wire.node}`, JSON.stringify(wire), 'PX', KEPT_MS),
    ]);
  }
}

const nameOf = (place: number): string => `simulated-${place}`;

/** What a real process has written of itself. */
export async function snapshotOf(url: string, nodeId: string): Promise<string> {
  const client = new Redis(url);
  try {
    for (let tries = 0; tries < 100; tries++) {
      const text = await client.get(`${PREFIX}:mon:${nodeId}`);
      if (text !== null) return text;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    throw new Error(`${nodeId} has written nothing`);
  } finally {
    client.disconnect();
  }
}

/** How many nodes were merged last. */
export async function mergedNodes(url: string): Promise<number> {
  const client = new Redis(url);
  try {
    const text = await client.get(`${PREFIX}:{monitor}:merged`);
    return text === null ? 0 : (JSON.parse(text) as { nodeCount: number }).nodeCount;
  } finally {
    client.disconnect();
  }
}
