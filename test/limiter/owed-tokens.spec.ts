import { createRateLimiter, type Decision, type PolicyInput, type RateLimiter } from 'nestjs-weir';
import { Machine } from '../../lib/cli/simulator/engine/machine.js';
import { Network } from '../../lib/cli/simulator/engine/network.js';
import { seededRandom } from '../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualTime } from '../../lib/cli/simulator/engine/virtual-time.js';
import { virtualDriver } from '../../lib/cli/simulator/redis/virtual-client.js';
import { VirtualLinks } from '../../lib/cli/simulator/redis/virtual-links.js';
import { VirtualRedis } from '../../lib/cli/simulator/redis/virtual-redis.js';

const TURNS = 24;
const P = { policy: 'p', key: 'k' };

/** One process and its store, on a clock of their own. */
class Stand {
  readonly time = new VirtualTime(TURNS);
  readonly machine = new Machine('n1', this.time, seededRandom(1));
  readonly links: VirtualLinks;
  readonly limiter: RateLimiter;
  /** Tokens that the store has given, less those that came back. */
  given = 0;

  constructor(p: PolicyInput) {
    const server = new VirtualRedis(this.time, {
      bucket: (_process, name, tokens) => (this.given += name.endsWith(':k') ? tokens : 0),
      quota: () => {},
      called: () => {},
      nodes: () => {},
    });
    const network = new Network(this.time, seededRandom(2), 20);
    this.links = new VirtualLinks(this.time, network, server);
    const driver = virtualDriver(this.machine, this.links);
    const { clock } = this.machine;
    const store = { type: 'redis' as const, url: 'redis://virtual', driver };
    this.limiter = createRateLimiter({ policies: { p }, clock, nodeId: 'n1', store });
  }

  async pass(ms: number): Promise<void> {
    await this.time.runUntil(this.time.seconds() + ms / 1000);
  }

  async ask(cost = 1): Promise<Decision> {
    return this.soon(() => this.limiter.tryAcquire({ ...P, cost }));
  }

  /** Tokens in the bucket, as the store has them: those that this process holds on lease are not in it. */
  async inStore(): Promise<number> {
    const other = new Machine('n2', this.time, seededRandom(3));
    const driver = virtualDriver(other, this.links);
    const { base } = this.limiter.policy('p')!;
    const limit = { rate: base.capacity, period: '1d' as const, sync: 'exact' as const };
    const looker = createRateLimiter({
      ...{ policies: { p: limit }, clock: other.clock, nodeId: 'n2' },
      store: { type: 'redis', url: 'redis://virtual', driver },
    });
    await this.pass(50);
    const { remaining } = await this.soon(() => looker.peek(P));
    other.isAlive = false;
    return remaining;
  }

  goDown(): void {
    this.links.isDown = true;
    this.links.drop();
  }

  async comeBack(): Promise<void> {
    this.links.isDown = false;
    await this.pass(400);
  }

  private async soon<T>(task: () => T | Promise<T>): Promise<T> {
    const settled: T[] = [];
    this.machine.run(
      'arrival',
      () => void Promise.resolve(task()).then((one) => settled.push(one)),
    );
    for (let ms = 0; ms < 50 && settled.length === 0; ms++) await this.pass(1);
    return settled[0]!;
  }
}

describe('tokens that passed by share while the store was away', () => {
  it('are told to it as soon as it answers for the key', async () => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'exact' });
    await stand.pass(100);
    stand.goDown();
    await stand.pass(10);
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    await stand.comeBack();
    expect(await stand.ask()).toMatchObject({ allowed: true, source: 'store' });
    expect(await stand.inStore()).toBe(59);
  });

  it.each([
    ['lowered', 50, 29],
    ['raised', 200, 119],
  ])('are the same part of a limit that was %s meanwhile', async (_what, rate, left) => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'exact' });
    await stand.pass(100);
    stand.goDown();
    await stand.pass(10);
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    stand.limiter.prepare({
      revision: 1,
      policies: { p: { rate, period: '1d', sync: 'exact' } },
    })();
    await stand.comeBack();
    expect(await stand.ask()).toMatchObject({ allowed: true, source: 'store' });
    expect(await stand.inStore()).toBe(left);
  });

  it('are told also if it is asked for leases only', async () => {
    const stand = new Stand({ rate: 100, period: '1d', sync: 'leased' });
    await stand.pass(100);
    for (let i = 0; i < 10; i++) {
      await stand.ask();
      await stand.pass(5);
    }
    stand.goDown();
    await stand.pass(10);
    expect(await stand.ask(40)).toMatchObject({ allowed: true, source: 'fallback' });
    await stand.comeBack();
    const given = stand.given;
    for (let i = 0; i < 4 && stand.given === given; i++) {
      expect(await stand.ask()).toMatchObject({ allowed: true, source: 'local' });
      await stand.pass(20);
    }
    expect(stand.given).toBeGreaterThan(given);
    expect(await stand.inStore()).toBe(100 - stand.given - 40);
  });
});
