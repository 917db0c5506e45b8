import { Class, Handler } from './nest-metadata.js';

/** A method of a class, by its name. */
export interface NamedHandler {
  /** In which it was found. */
  readonly module?: Class;
  readonly type: Class;
  readonly handler: Handler;
  readonly name: string;
}

interface Entry<T> {
  readonly type: Class;
  readonly value: T;
  /** Of another class that has inherited the same handler. */
  readonly other: Entry<T> | undefined;
}

/** Something about each handler of each class, made when it is first asked for. */
export class ByHandler<T> {
  private readonly entries = new Map<Handler, Entry<T>>();

  constructor(private readonly make: (type: Class, handler: Handler) => T) {}

  /** One look, as hardly any handler belongs to two classes. */
  of(type: Class, handler: Handler): T {
    const first = this.entries.get(handler);
    return first !== undefined && first.type === type
      ? first.value
      : this.search(type, handler, first);
  }

  private search(type: Class, handler: Handler, first: Entry<T> | undefined): T {
    for (let entry = first; entry !== undefined; entry = entry.other) {
      if (entry.type === type) return entry.value;
    }
    const value = this.make(type, handler);
    // To make it may have meant to ask for it.
    this.entries.set(handler, { type, value, other: this.entries.get(handler) });
    return value;
  }
}
