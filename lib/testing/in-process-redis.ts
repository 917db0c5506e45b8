import { SystemClock, type Clock } from '../common/clock.js';
import { Machine } from '../cli/simulator/engine/machine.js';
import { type Timeline } from '../cli/simulator/engine/virtual-time.js';
import { virtualDriver } from '../cli/simulator/redis/virtual-client.js';
import { VirtualLinks } from '../cli/simulator/redis/virtual-links.js';
import { VirtualRedis } from '../cli/simulator/redis/virtual-redis.js';
import { type StoreInput } from '../limiter/options.js';

/** Options of an `InProcessRedis`. */
export interface InProcessRedisOptions {
  /** The clock of the store. Default: that of this process. Give it the `ManualClock` that your limits have. */
  readonly clock?: Clock;
}

/** The store of a node, as options of the module. */
export type InProcessStore = Extract<StoreInput, { type: 'redis' }>;

/**
 * A Redis within this process, for tests and demonstrations of several nodes: they share limits, quotas, configuration and
 * figures as they would through a server, and can lose it. Above the connection everything is the code that
 * runs in production; below, the scripts are answered by the algorithms that they are held to.
 *
 *     const redis = new InProcessRedis();
 *     RateLimitModule.forRoot({ nodeId: 'api-1', store: redis.store() });
 *     redis.goAway();
 */
export class InProcessRedis {
  private readonly time: Timeline;
  private readonly links: VirtualLinks;
  private nodes = 0;

  constructor({ clock = new SystemClock() }: InProcessRedisOptions = {}) {
    this.time = timelineOn(clock);
    const server = new VirtualRedis(this.time, NOBODY, (micros) => clock.epochMs(micros) * 1000);
    this.links = new VirtualLinks(this.time, { delayMicros: () => 0 }, server);
  }

  /** The store of one more node. */
  store(options: Omit<InProcessStore, 'type' | 'client' | 'url' | 'options' | 'cluster'> = {}) {
    const machine = new Machine(`node ${++this.nodes}`, this.time, () => this.time.random());
    const driver = virtualDriver(machine, this.links);
    const store: InProcessStore = { ...options, type: 'redis', url: 'redis://in-process', driver };
    return store;
  }

  /** As when the server or the network is gone: connections break, and new ones are refused. What it holds it keeps. */
  goAway(): void {
    this.links.isDown = true;
    this.links.drop();
  }

  /** Nodes find it again by themselves, within a second or two. */
  comeBack(): void {
    this.links.isDown = false;
  }
}

const nothing = (): void => {};
const NOBODY = { bucket: nothing, quota: nothing, called: nothing, nodes: nothing };

/** The time of this process, or of a test: what is due at once waits for the next turn of the event loop, in order. */
const timelineOn = (clock: Clock): Timeline => ({
  needsSettling: false,
  now: () => clock.now(),
  epochMs: (nowMicros) => clock.epochMs(nowMicros),
  after: (delayMs, task) => clock.after(delayMs, task),
  every: (intervalMs, task) => clock.every(intervalMs, task),
  soon: (task) => clock.soon(task),
  random: () => clock.random(),
  at: (_atMicros, run) => void clock.soon(run),
});
