import { createRateLimiter, type RateLimiter } from 'nestjs-weir';
import { Machine } from '../../lib/cli/simulator/engine/machine.js';
import { Network } from '../../lib/cli/simulator/engine/network.js';
import { seededRandom } from '../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualTime } from '../../lib/cli/simulator/engine/virtual-time.js';
import { virtualDriver } from '../../lib/cli/simulator/redis/virtual-client.js';
import { VirtualLinks } from '../../lib/cli/simulator/redis/virtual-links.js';
import { VirtualRedis } from '../../lib/cli/simulator/redis/virtual-redis.js';

const TURNS = 24;
/** By then a limiter has found out that its store is back. */
const BACK_MS = 400;

/** One process and its store, on a clock of their own; what lies between them can be made to fail. */
export class VirtualStand {
  readonly time = new VirtualTime(TURNS);
  readonly machine = new Machine('n1', this.time, seededRandom(1));
  readonly links: VirtualLinks;
  /** Tokens of buckets that the store has given, less those that came back. */
  given = 0;

  constructor() {
    const server = new VirtualRedis(this.time, {
      bucket: (_process, name, tokens) => (this.given += name.endsWith(':k') ? tokens : 0),
      quota: () => {},
      called: () => {},
      nodes: () => {},
    });
    const network = new Network(this.time, seededRandom(2), 20);
    this.links = new VirtualLinks(this.time, network, server);
  }

  /** The store of a limiter of this process. */
  get store() {
    return this.storeOf(this.machine);
  }

  async pass(ms: number): Promise<void> {
    await this.time.runUntil(this.time.seconds() + ms / 1000);
  }

  goDown(): void {
    this.links.isDown = true;
    this.links.drop();
  }

  async comeBack(): Promise<void> {
    this.links.isDown = false;
    await this.pass(BACK_MS);
  }

  /** Nothing comes through on the connection of the process, and nobody is told; it finds out within a second or so. */
  cutOff(): void {
    for (const connection of this.links.of('n1')) connection.isDeaf = true;
  }

  /** Does something in the process, and lets time pass until it is done. */
  async run<T>(task: () => T | Promise<T>): Promise<T> {
    const settled: T[] = [];
    const keep = (one: T): void => void settled.push(one);
    this.machine.run('arrival', () => void Promise.resolve(task()).then(keep));
    for (let ms = 0; ms < 1000 && settled.length === 0; ms++) {
      // Work that does not go by this clock has its turn as well.
      await new Promise((resolve) => setImmediate(resolve));
      await this.pass(1);
    }
    return settled[0]!;
  }

  /** Tokens in the bucket k of a policy of so many a day, as another process sees it. */
  async inStore(policy: string, perDay: number): Promise<number> {
    const found = await this.elsewhere(policy, perDay, (other) => other.peek({ policy, key: 'k' }));
    return found.remaining;
  }

  /** Another process has it start anew. */
  async reset(policy: string, perDay: number): Promise<void> {
    await this.elsewhere(policy, perDay, (other) => other.reset({ policy, key: 'k' }));
  }

  private async elsewhere<T>(
    policy: string,
    perDay: number,
    task: (other: RateLimiter) => T | Promise<T>,
  ): Promise<T> {
    const machine = new Machine('n2', this.time, seededRandom(3));
    const policies = { [policy]: { rate: perDay, period: '1d', sync: 'exact' } as const };
    const other = createRateLimiter({
      ...{ policies, clock: machine.clock, nodeId: 'n2', store: this.storeOf(machine) },
    });
    await this.pass(50);
    const done = await this.run(() => task(other));
    machine.isAlive = false;
    return done;
  }

  private storeOf(machine: Machine) {
    const driver = virtualDriver(machine, this.links);
    return { type: 'redis' as const, url: 'redis://virtual', driver };
  }
}
