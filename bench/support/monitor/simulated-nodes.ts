import { Redis } from 'ioredis';

const PREFIX = 'weir';
const KEPT_MS = 60_000;
/** Each of a thousand nodes writes once in so long while nobody looks. */
const PERIOD_MS = 20_000;

interface Wire {
  node: string;
  series: [number, string, number[], ...unknown[]][];
}

/**
 * Processes that are none: each writes what a real one has written, with counts that grow, and asks whether anybody looks
 * or leads. One after the other, as nodes that know nothing of each other.
 */
export class SimulatedNodes {
  private readonly client: Redis;
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
    // Without waiting, as processes do it.
    await Promise.all([
      this.client.mget(`${PREFIX}:{monitor}:lead`, `${PREFIX}:{monitor}:watch`),
      this.client.set(`${PREFIX}:mon:${wire.node}`, JSON.stringify(wire), 'PX', KEPT_MS),
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
