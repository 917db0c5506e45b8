import { type MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { type NamedHandler } from './by-handler.js';
import { type Class, type Handler } from './nest-metadata.js';
import { routeInfosOf, type RouteInfo } from './route-infos.js';

/** A handler of a controller, in one of the modules that declare it. */
export interface FoundHandler extends NamedHandler {
  readonly module: Class;
}

/** Where Nest keeps what a handler listens to. */
export const MESSAGE_PATTERN = 'microservices:pattern';
export const PATH = 'path';

/** Finds the handlers of an application, and where each is served. */
export class HandlerExplorer {
  constructor(
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /** In the order of modules and declarations, which another deployment may change. */
  *handlers(): Iterable<FoundHandler> {
    for (const { metatype: module, controllers, providers } of this.modules.values()) {
      for (const { metatype, instance } of [...controllers.values(), ...providers.values()]) {
        const type = metatype as Class | null;
        if (typeof type !== 'function' || type.prototype === undefined) continue;
        if (!(instance instanceof type)) continue;
        const prototype = type.prototype as Record<string, Handler>;
        for (const name of this.methodNamesOf(type)) {
          yield { module, type, handler: prototype[name]!, name };
        }
      }
    }
  }

  /** The methods that objects of a class have, inherited ones too. */
  methodNamesOf(type: Class): string[] {
    const prototype = type.prototype as Record<string, unknown>;
    const names = this.scanner.getAllMethodNames(prototype);
    return names.filter((name) => typeof prototype[name] === 'function');
  }

  /** The paths under which a handler is served, in all modules that have it. */
  pathsOf(type: Class, handler: Handler): RouteInfo[] {
    if (!Reflect.hasMetadata(PATH, handler)) return [];
    const having = [...this.modules.values()].filter(({ controllers }) => controllers.has(type));
    const { applicationId } = this.modules;
    return having.flatMap(({ metatype }) => routeInfosOf(metatype, type, handler, applicationId));
  }

  /** True for what requests or messages are sent to. */
  serves(handler: Handler): boolean {
    return Reflect.hasMetadata(PATH, handler) || Reflect.hasMetadata(MESSAGE_PATTERN, handler);
  }
}
