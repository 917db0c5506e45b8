import { type OnModuleInit } from '@nestjs/common';
import { type FoundHandler, type HandlerExplorer } from '../requests/handlers.js';
import { checkClass } from './degrade-check.js';
import { degradeOf, hasOwnDegrade } from './degrade-options.js';
import { type DegradeRoutes } from './degrade-routes.js';
import { DegradeInterceptor } from './degrade.interceptor.js';
import { INTERCEPTORS } from '../requests/nest-metadata.js';

/** Looks at every `@Degrade` at start, so that what is wrong with one is known then. */
export class DegradeExplorer implements OnModuleInit {
  constructor(
    private readonly explorer: HandlerExplorer,
    private readonly routes: DegradeRoutes,
  ) {
    // Nest puts routes together before it initialises modules.
    for (const { type, handler } of this.handlers()) bindInnermost(type, handler);
  }

  onModuleInit(): void {
    for (const { type, handler } of this.handlers()) this.routes.of(type, handler);
    const own = [...this.explorer.handlers()].filter(({ type }) => hasOwnDegrade(type));
    for (const type of new Set(own.map((one) => one.type))) {
      checkClass(
        type,
        own.filter((one) => one.type === type),
      );
    }
  }

  private *handlers(): Iterable<FoundHandler> {
    for (const found of this.explorer.handlers()) {
      const { type, handler } = found;
      const isServed = degradeOf(type) !== undefined && this.explorer.serves(handler);
      if (isServed || degradeOf(handler) !== undefined) yield found;
    }
  }
}

/**
 * Puts the interceptor behind all others of a route, wherever its decorator stands among theirs: what
 * is kept is what the handler said, and what is given goes through everything that its answers go
 * through. Has to be done before Nest looks at the routes.
 */
export function bindInnermost(type: object, handler: object): void {
  if (isBoundTo(type)) moveToEnd(type);
  const own = interceptorsOf(handler);
  // A class's interceptors are around those of its methods.
  if (own.length > 0 && (isBoundTo(type) || isBoundTo(handler))) moveToEnd(handler);
}

/** Both on the class and on the method: it is called twice, and the inner one is meant. */
export function isBoundTwice(type: object, handler: object): boolean {
  return isBoundTo(type) && isBoundTo(handler);
}

function isBoundTo(target: object): boolean {
  return interceptorsOf(target).includes(DegradeInterceptor);
}

function moveToEnd(target: object): void {
  const others = interceptorsOf(target).filter((one) => one !== DegradeInterceptor);
  Reflect.defineMetadata(INTERCEPTORS, [...others, DegradeInterceptor], target);
}

function interceptorsOf(target: object): readonly unknown[] {
  return (Reflect.getMetadata(INTERCEPTORS, target) ?? []) as unknown[];
}
