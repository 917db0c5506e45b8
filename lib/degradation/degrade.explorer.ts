import { type OnModuleInit } from '@nestjs/common';
import { type FoundHandler, type HandlerExplorer } from '../requests/handlers.js';
import { degradeOf } from './degrade-metadata.js';
import { type DegradeRoutes } from './degrade-routes.js';
import { bindInnermost } from './innermost.js';

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
  }

  private *handlers(): Iterable<FoundHandler> {
    for (const found of this.explorer.handlers()) {
      const { type, handler } = found;
      const isServed = degradeOf(type) !== undefined && this.explorer.serves(handler);
      if (isServed || degradeOf(handler) !== undefined) yield found;
    }
  }
}
