import { type ExecutionContext, type Type } from '@nestjs/common';

type Handler = ReturnType<ExecutionContext['getHandler']>;

/** What a guard would be given for the request, as far as it is known in a middleware. */
export class EarlyContext implements ExecutionContext {
  constructor(
    private readonly args: readonly [request: object, response: object, next: () => void],
    private readonly type: unknown,
    private readonly handler: unknown,
  ) {}

  getClass<T>(): Type<T> {
    return this.type as Type<T>;
  }

  getHandler(): Handler {
    return this.handler as Handler;
  }

  getArgs<T extends unknown[]>(): T {
    return this.args as unknown as T;
  }

  getArgByIndex<T>(index: number): T {
    return this.args[index] as T;
  }

  getType<T extends string>(): T {
    return 'http' as T;
  }

  switchToHttp(): ReturnType<ExecutionContext['switchToHttp']> {
    const [request, response, next] = this.args;
    return {
      getRequest: <T>() => request as T,
      getResponse: <T>() => response as T,
      getNext: <T>() => next as T,
    };
  }

  switchToRpc(): never {
    throw new Error('an early policy is about a request of HTTP, not about a message');
  }

  switchToWs(): never {
    throw new Error('an early policy is about a request of HTTP, not about a message');
  }
}
