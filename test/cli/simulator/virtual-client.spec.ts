import type { Redis } from 'ioredis';
import { createRateLimiter } from 'nestjs-weir';
import { Machine } from '../../../lib/cli/simulator/engine/machine.js';
import { Network } from '../../../lib/cli/simulator/engine/network.js';
import { seededRandom } from '../../../lib/cli/simulator/engine/seeded-random.js';
import { VirtualTime } from '../../../lib/cli/simulator/engine/virtual-time.js';
import { VirtualClient } from '../../../lib/cli/simulator/redis/virtual-client.js';
import { VirtualLinks } from '../../../lib/cli/simulator/redis/virtual-links.js';
import { VirtualRedis } from '../../../lib/cli/simulator/redis/virtual-redis.js';

const TURNS = 24;
const RETRY_MS = 50;

class Stand {
  readonly time = new VirtualTime(TURNS);
  readonly machine = new Machine('n1', this.time, seededRandom(1));
  readonly server = new VirtualRedis(this.time, {
    bucket: () => {},
    quota: () => {},
    called: () => {},
    nodes: () => {},
  });
  readonly network = new Network(this.time, seededRandom(2), 20);
  readonly links = new VirtualLinks(this.time, this.network, this.server);
  readonly client = new VirtualClient(this.machine, this.links, { retryStrategy: () => RETRY_MS });
  readonly heard: string[] = [];

  constructor() {
    this.client.defineCommand('weirForgetBucket');
  }

  /** Asks under a number, and notes the number that the reply has. */
  ask(number: number): void {
    const commands = this.client as unknown as Record<string, (...args: unknown[]) => Promise<[]>>;
    commands.weirForgetBucket!('key', 'reset', '', 1000, number).then(
      (reply) => this.heard.push(`${number} got ${String(reply.at(-1))}`),
      () => this.heard.push(`${number} lost`),
    );
  }

  get connection() {
    return this.links.of('n1')[0]!;
  }
}

describe('a virtual client', () => {
  it('gives each reply to the call that has waited longest', async () => {
    const stand = new Stand();
    await stand.time.runUntil(1);
    expect(stand.client.status).toBe('ready');
    for (const number of [1, 2, 3]) stand.ask(number);
    await stand.time.runUntil(2);
    expect(stand.heard).toEqual(['1 got 1', '2 got 2', '3 got 3']);
  });

  it.each([
    ['doubled', ['1 got 1', '2 got 1', '3 got 2']],
    ['skipped', ['1 got 2', '2 got 3']],
    ['lost', ['1 lost', '2 lost', '3 lost']],
  ] as const)('is out of step, or loses all, after a reply that is %s', async (fault, heard) => {
    const stand = new Stand();
    await stand.time.runUntil(1);
    stand.connection.nextReply = fault;
    for (const number of [1, 2, 3]) stand.ask(number);
    await stand.time.runUntil(2);
    expect(stand.heard).toEqual(heard);
    expect(stand.client.status).toBe('ready');
  });

  it('hears nothing on a connection that is half-open until that is given up', async () => {
    const stand = new Stand();
    await stand.time.runUntil(1);
    stand.connection.isDeaf = true;
    stand.ask(1);
    await stand.time.runUntil(60);
    expect([stand.client.status, ...stand.heard]).toEqual(['ready']);
    stand.client.stream!.destroy();
    await stand.time.runUntil(61);
    stand.ask(2);
    await stand.time.runUntil(62);
    expect(stand.heard).toEqual(['1 lost', '2 got 2']);
  });

  it('connects anew once the store is back', async () => {
    const stand = new Stand();
    await stand.time.runUntil(1);
    stand.links.isDown = true;
    stand.links.drop();
    await stand.time.runUntil(2);
    expect(stand.client.status).not.toBe('ready');
    stand.links.isDown = false;
    await stand.time.runUntil(2 + (2 * RETRY_MS) / 1000);
    expect(stand.client.status).toBe('ready');
  });

  it('is a client that a limiter can be given', async () => {
    const { time, machine, client } = new Stand();
    const limiter = createRateLimiter({
      policies: { calls: { rate: '10/s', burst: 3, sync: 'exact' } },
      clock: machine.clock,
      store: { type: 'redis', client: client as unknown as Redis },
    });
    const allowed: boolean[] = [];
    for (let i = 0; i < 5; i++) {
      void Promise.resolve(limiter.tryAcquire({ policy: 'calls', key: 'k' })).then((decision) => {
        expect(decision.source).toBe('store');
        allowed.push(decision.allowed);
      });
    }
    await time.runUntil(1);
    expect(allowed).toEqual([true, true, true, false, false]);
  });
});

describe('a machine', () => {
  it('runs what was due during a stall afterwards, timers before what arrived', async () => {
    const { time, machine } = new Stand();
    const seen: string[] = [];
    await time.runUntil(1);
    machine.stall(500);
    machine.run('arrival', () => seen.push(`arrival ${time.seconds()}`));
    machine.clock.after(100, () => seen.push(`timer ${time.seconds()}`));
    machine.clock.after(100, () => seen.push('cancelled'))();
    await time.runUntil(1.4);
    expect(seen).toEqual([]);
    await time.runUntil(2);
    expect(seen).toEqual(['timer 1.5', 'arrival 1.5']);
  });

  it('does nothing any more when it is dead', async () => {
    const { time, machine } = new Stand();
    const seen: string[] = [];
    machine.clock.after(100, () => seen.push('timer'));
    machine.isAlive = false;
    machine.run('arrival', () => seen.push('arrival'));
    await time.runUntil(1);
    expect(seen).toEqual([]);
  });
});
