import { type QuotaCall, type QuotaReply } from '../../../algorithms/quota/quota-protocol.js';
import { type QuotaStore } from '../../../stores/quota-store.js';
import { Machine } from './machine.js';
import { type World } from './world.js';

/** A machine that runs one node, beside the store of its world. */
export class Host extends Machine implements QuotaStore {
  constructor(
    nodeId: string,
    readonly incarnation: string,
    private readonly world: World,
  ) {
    super(nodeId, world.time, world.random);
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
