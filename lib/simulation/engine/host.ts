import { type QuotaCall, type QuotaReply } from '../../algorithms/quota/index.js';
import { type Cancel, type Clock } from '../../common/clock.js';
import { type QuotaStore } from '../../stores/quota-store.js';
import { type World } from './world.js';

/**
 * A machine that runs one node. When it dies, its timers and its calls die with it: nothing that the
 * process would still have done happens, and nothing that comes for it is heard.
 */
export class Host implements QuotaStore {
  isAlive = true;
  readonly clock: Clock;

  constructor(
    readonly nodeId: string,
    readonly incarnation: string,
    private readonly world: World,
  ) {
    const { time } = world;
    this.clock = {
      now: () => time.now(),
      epochMs: (micros) => time.epochMs(micros),
      after: (delayMs, task) => time.after(delayMs, this.whileAlive(task)),
      every: (intervalMs, task): Cancel => time.every(intervalMs, this.whileAlive(task)),
    };
  }

  settle(call: QuotaCall): Promise<QuotaReply> {
    return this.hear(this.world.store.settle(call));
  }

  /** Asks the far end anything. */
  ask<T>(serve: () => T): Promise<T> {
    return this.hear(this.world.network.call(serve));
  }

  private hear<T>(answer: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      answer.then(this.whileAlive(resolve), this.whileAlive(reject));
    });
  }

  private whileAlive<A extends unknown[]>(task: (...args: A) => void): (...args: A) => void {
    return (...args) => {
      if (this.isAlive) task(...args);
    };
  }
}
