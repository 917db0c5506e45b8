import { type ExecutionContext } from '@nestjs/common';
import { isPromise } from '../common/promises.js';

type Read<T> = (context: ExecutionContext) => T | PromiseLike<T>;

/** Thrown where a value is not there yet; the request is built again when it is. */
export class NotYet extends Error {
  constructor(readonly settled: Promise<void>) {
    super('a value is not there yet');
  }
}

/**
 * Values that the application may look up: who is calling, and of which tier. As long as they come
 * at once nothing is kept. A promise ends the attempt, which is made again once it has settled.
 */
export class AwaitedValues {
  private readonly settled = new WeakMap<ExecutionContext, Map<unknown, unknown>>();
  /** To look into the map for each request would cost more than most values. */
  private isAny = false;

  /** `onFailure` is called for promises that reject: their value is undefined. */
  constructor(private readonly onFailure: (policy: string | undefined, cause: unknown) => void) {}

  /** `policy` owns the value; undefined if it is for all policies. */
  read<T>(policy: string | undefined, read: Read<T>, context: ExecutionContext): T | undefined {
    if (this.isAny) {
      const known = this.settled.get(context);
      if (known?.has(read)) return known.get(read) as T | undefined;
    }
    const value = read(context);
    if (!isPromise(value)) return value as T;
    this.isAny = true;
    throw new NotYet(this.settle(policy, read, context, value));
  }

  /** The request has been built. A later one may find other values. */
  forget(context: ExecutionContext): void {
    if (this.isAny) this.settled.delete(context);
  }

  private async settle<T>(
    policy: string | undefined,
    read: Read<T>,
    context: ExecutionContext,
    promise: PromiseLike<T>,
  ): Promise<void> {
    let value: T | undefined;
    try {
      value = await promise;
    } catch (error) {
      this.onFailure(policy, error);
    }
    let known = this.settled.get(context);
    if (known === undefined) this.settled.set(context, (known = new Map()));
    known.set(read, value);
  }
}
