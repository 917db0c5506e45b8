import { type ExecutionContext } from '@nestjs/common';
import { isPromise } from '../common/promises.js';

type Read<T> = (context: ExecutionContext) => T | PromiseLike<T>;

/** Thrown where a value is not there yet; the question is put again when it is. */
export class NotYet extends Error {
  constructor(readonly settled: Promise<void>) {
    super('a value is not there yet');
  }
}

/**
 * Values that the application may look up: who is calling, and of which tier. As long as they come
 * at once nothing is kept. A promise ends the question, which is put again once it has settled.
 */
export class AwaitedValues {
  private readonly settled = new WeakMap<ExecutionContext, Map<unknown, unknown>>();
  /** To look into the map for each request would cost more than most values. */
  private isAny = false;

  /** `onFailure` is told of promises that reject: their value is undefined. */
  constructor(private readonly onFailure: (policy: string | undefined, cause: unknown) => void) {}

  /** `policy` is whose value it is; undefined if it is everybody's. */
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

  /** The question has been put. Somebody who asks later may be told something else. */
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
