import { type OnModuleInit } from '@nestjs/common';
import { type MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { protectedMethodOf, protectWith, type ProtectedMethod } from './protect.decorator.js';
import { UnknownResourceError } from './errors.js';
import { type Protection } from './protection.js';

/** Finds what `@Protect` says, so that what is wrong with it is known at the start. */
export class ProtectionExplorer implements OnModuleInit {
  private protection: Protection | undefined;

  constructor(
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

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
    return this.scanner.getAllMethodNames(prototype).flatMap((name) => {
      const method = (prototype as Record<string, unknown>)[name];
      return typeof method === 'function' ? (protectedMethodOf(method) ?? []) : [];
    });
  }

  private *prototypes(): Iterable<object> {
    for (const { controllers, providers } of this.modules.values()) {
      for (const { metatype } of [...controllers.values(), ...providers.values()]) {
        const prototype = (metatype as { prototype?: object } | null)?.prototype;
        if (typeof prototype === 'object' && prototype !== null) yield prototype;
      }
    }
  }

  private *madeByFactories(): Iterable<object> {
    for (const { providers } of this.modules.values()) {
      for (const { inject, isNotMetatype, instance } of providers.values()) {
        const isMade = Array.isArray(inject) || isNotMetatype;
        if (isMade && typeof instance === 'object' && instance !== null) yield instance;
      }
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
