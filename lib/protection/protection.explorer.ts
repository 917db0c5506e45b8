import { type OnModuleInit } from '@nestjs/common';
import { type HandlerExplorer } from '../requests/handlers.js';
import { UnknownResourceError } from './errors.js';
import { protectedMethodOf, protectWith, type ProtectedMethod } from './protect.decorator.js';
import { type Protection } from './protection.js';

/** Finds every `@Protect`, so that a fault of one is known at the start. */
export class ProtectionExplorer implements OnModuleInit {
  private protection: Protection | undefined;

  constructor(private readonly explorer: HandlerExplorer) {}

  /** All classes are known by now, and none of their methods can have been called. */
  declareIn(protection: Protection): void {
    this.protection = protection;
    for (const prototype of this.prototypes()) this.declare(protection, prototype);
  }

  onModuleInit(): void {
    const { protection } = this;
    if (protection === undefined) return;
    for (const instance of this.madeByFactories()) {
      if (this.declare(protection, prototypeOf(instance))) protectWith(instance, protection);
    }
    for (const prototype of this.prototypes()) {
      for (const method of this.methodsOf(prototype)) mustHave(protection, method);
    }
    protection.checkRates();
  }

  private declare(protection: Protection, prototype: object | null): boolean {
    const methods = this.methodsOf(prototype);
    for (const { resource, options } of methods) {
      if (options !== undefined) protection.declare(resource, options);
    }
    return methods.length > 0;
  }

  private methodsOf(prototype: object | null): ProtectedMethod[] {
    if (prototype === null || prototype === Object.prototype) return [];
    return this.explorer.methodNamesOf(prototype).flatMap((name) => {
      return protectedMethodOf((prototype as Record<string, object>)[name]!) ?? [];
    });
  }

  private *prototypes(): Iterable<object> {
    for (const { type } of this.explorer.providers()) {
      const prototype = type?.prototype as unknown;
      if (typeof prototype === 'object' && prototype !== null) yield prototype;
    }
  }

  private *madeByFactories(): Iterable<object> {
    for (const { isMadeElsewhere, instance } of this.explorer.providers()) {
      if (isMadeElsewhere && typeof instance === 'object' && instance !== null) yield instance;
    }
  }
}

const prototypeOf = (instance: object): object | null =>
  Object.getPrototypeOf(instance) as object | null;

function mustHave(protection: Protection, { resource, name }: ProtectedMethod): void {
  if (protection.has(resource)) return;
  const known = Object.keys(protection.stats());
  throw new UnknownResourceError(resource, known, `@Protect on ${name}`);
}
