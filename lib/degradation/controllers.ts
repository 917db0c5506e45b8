import { type ExecutionContext } from '@nestjs/common';
import { ContextIdFactory, type ModuleRef } from '@nestjs/core';

type Class = abstract new (...args: never[]) => unknown;

/** Finds the controller that a request was meant for. */
export class Controllers {
  /** Undefined for those that are made anew for each request. */
  private readonly known = new Map<Class, object | undefined>();

  constructor(private readonly modules: ModuleRef) {}

  of(context: ExecutionContext): object | Promise<object> {
    const type = context.getClass<object>();
    return this.find(type) ?? this.ofRequest(type, context);
  }

  /** For work that no request has asked for. */
  apart(type: Class): object | Promise<object> {
    return this.find(type) ?? this.modules.resolve<object>(type, undefined, { strict: false });
  }

  private find(type: Class): object | undefined {
    if (!this.known.has(type)) this.known.set(type, this.lasting(type));
    return this.known.get(type);
  }

  private lasting(type: Class): object | undefined {
    try {
      return this.modules.get<object>(type, { strict: false });
    } catch {
      return undefined;
    }
  }

  /**
   * Nest keeps the identity of a request of HTTP with it. That of a message is out of reach, so its
   * controller is made once more.
   */
  private ofRequest(type: Class, context: ExecutionContext): Promise<object> {
    const isHttp = context.getType() === 'http';
    const request = isHttp ? context.getArgByIndex<Record<string, unknown>>(0) : undefined;
    const id = ContextIdFactory.getByRequest(request!);
    if (!isHttp) this.modules.registerRequestByContextId(messageOf(context), id);
    return this.modules.resolve<object>(type, id, { strict: false });
  }
}

/** What Nest gives to those who inject the request of a message. */
function messageOf(context: ExecutionContext): object {
  const [data, own] = context.getArgs<unknown[]>();
  return { data, context: own, getData: () => data, getContext: () => own };
}
