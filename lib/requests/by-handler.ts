import { type Class, type Handler } from './nest-metadata.js';

/** A method of a class, by its name. */
export interface NamedHandler {
  /** In which it was found. */
  readonly module?: Class;
  readonly type: Class;
  readonly handler: Handler;
  readonly name: string;
}

interface HandlerEntry<T> {
  readonly type: Class;
  readonly value: T;
  /** Of another class that has inherited the same handler. */
  readonly other: HandlerEntry<T> | undefined;
}

/** One value for each handler of each class, made when it is first needed. */
export class ByHandler<T> {
  private readonly entries = new Map<Handler, HandlerEntry<T>>();

  constructor(private readonly make: (type: Class, handler: Handler) => T) {}

  /** One look, as hardly any handler belongs to two classes. */
  of(type: Class, handler: Handler): T {
    const first = this.entries.get(handler);
    return first !== undefined && first.type === type
      ? first.value
      : this.search(type, handler, first);
  }

  private search(type: Class, handler: Handler, first: HandlerEntry<T> | undefined): T {
    for (let entry = first; entry !== undefined; entry = entry.other) {
      if (entry.type === type) return entry.value;
    }
    const value = this.make(type, handler);
    // Making the value may have needed it already.
    this.entries.set(handler, { type, value, other: this.entries.get(handler) });
    return value;
  }
}

/** By the name of the property: what Nest wraps has lost the name of the function. */
export function methodNameOf(type: Class, handler: Handler): string {
  for (let proto: unknown = type.prototype; proto; proto = Object.getPrototypeOf(proto)) {
    const found = Object.entries(Object.getOwnPropertyDescriptors(proto)).find(
      ([, { value }]) => value === handler,
    );
    if (found !== undefined) return found[0];
  }
  return handler.name;
}
