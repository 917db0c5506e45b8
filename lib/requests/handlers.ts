import { type ExceptionFilter, type MiddlewareConsumer, type RequestMethod } from '@nestjs/common';
import { type MetadataScanner, type ModulesContainer } from '@nestjs/core';
import { type NamedHandler } from './by-handler.js';
import {
  FILTERS,
  IS_GATEWAY,
  MESSAGE_PATTERN,
  MODULE_PATH,
  PATH,
  VERB,
  VERSION,
  type Class,
  type Handler,
} from './nest-metadata.js';

/** A handler of a controller, in one of the modules that declare it. */
export interface FoundHandler extends NamedHandler {
  readonly module: Class;
}

/** A controller or provider of a module, as Nest keeps it. */
export interface FoundProvider {
  readonly module: Class;
  readonly isController: boolean;
  readonly token: unknown;
  /** Bound to all routes by APP_GUARD. */
  readonly isGlobalGuard: boolean;
  /** Its class; a factory or a value has none. */
  readonly type: Class | undefined;
  /** Undefined before Nest has made it. */
  readonly instance: unknown;
  /** A factory has made the instance, or it was given as a value. */
  readonly isMadeElsewhere: boolean;
}

/** Finds the classes and handlers of an application, and where each handler is served. */
export class HandlerExplorer {
  constructor(
    private readonly modules: ModulesContainer,
    private readonly scanner: MetadataScanner,
  ) {}

  /** In the order of modules and declarations, which another deployment may change. */
  *providers(): Iterable<FoundProvider> {
    for (const { metatype: module, controllers, providers } of this.modules.values()) {
      for (const wrappers of [controllers, providers]) {
        for (const [token, wrapper] of [...wrappers]) {
          const { metatype, instance, inject, isNotMetatype, subtype } = wrapper;
          const type = typeof metatype === 'function' ? (metatype as unknown as Class) : undefined;
          const isController = wrappers === controllers;
          const isMadeElsewhere = !isController && (Array.isArray(inject) || isNotMetatype);
          const isGlobalGuard = subtype === 'guard';
          yield { module, isController, token, isGlobalGuard, type, instance, isMadeElsewhere };
        }
      }
    }
  }

  *handlers(): Iterable<FoundHandler> {
    for (const { module, type, instance } of this.providers()) {
      if (type?.prototype === undefined || !(instance instanceof type)) continue;
      const prototype = type.prototype as Record<string, Handler>;
      for (const name of this.methodNamesOf(prototype)) {
        yield { module, type, handler: prototype[name]!, name };
      }
    }
  }

  /** The methods that objects of a class have, inherited ones too. */
  methodNamesOf(prototype: object): string[] {
    const names = this.scanner.getAllMethodNames(prototype);
    return names.filter((name) => typeof (prototype as Methods)[name] === 'function');
  }

  /** The paths under which a handler is served, in all modules that have it. */
  pathsOf(type: Class, handler: Handler): RouteInfo[] {
    if (!Reflect.hasMetadata(PATH, handler)) return [];
    const having = [...this.modules.values()].filter(({ controllers }) => controllers.has(type));
    const { applicationId } = this.modules;
    return having.flatMap(({ metatype }) => routeInfosOf(metatype, type, handler, applicationId));
  }

  /** True for handlers of requests or messages. */
  serves(handler: Handler): boolean {
    return Reflect.hasMetadata(PATH, handler) || Reflect.hasMetadata(MESSAGE_PATTERN, handler);
  }

  /**
   * Gateways meet the global guards of an application, but none of its global filters: each is given
   * this one as the outermost of its own. Before they are connected, which is before any hook runs.
   */
  bindToGateways(filter: ExceptionFilter): void {
    for (const { type, isController } of this.providers()) {
      const isGateway = type !== undefined && Reflect.hasMetadata(IS_GATEWAY, type);
      if (isGateway && !isController) bind(type, filter);
    }
  }

  /**
   * The same for controllers of messages: a microservice of `connectMicroservice` has none of the
   * application's global filters, unless it inherits them by option.
   */
  bindToMessageControllers(filter: ExceptionFilter): void {
    for (const { type, isController } of this.providers()) {
      if (isController && type !== undefined && this.takesMessages(type)) bind(type, filter);
    }
  }

  private takesMessages({ prototype }: Class): boolean {
    const names = this.scanner.getAllMethodNames(prototype as object);
    return names.some((name) =>
      Reflect.hasMetadata(MESSAGE_PATTERN, (prototype as Methods)[name]!),
    );
  }
}

type Methods = Record<string, object>;

function bind(type: object, filter: ExceptionFilter): void {
  const bound = (Reflect.getMetadata(FILTERS, type) ?? []) as object[];
  // Another application of the same process may have bound its own.
  const others = bound.filter((one) => one.constructor !== filter.constructor);
  Reflect.defineMetadata(FILTERS, [filter, ...others], type);
}

/** Nest exports the type from nowhere. */
export type RouteInfo = Extract<
  Parameters<ReturnType<MiddlewareConsumer['apply']>['forRoutes']>[number],
  { path: string }
>;

type Version = NonNullable<RouteInfo['version']>;

/** The paths under which a handler is served, less what Nest puts before all of them. */
export function routeInfosOf(
  module: object,
  type: object,
  handler: object,
  applicationId: string,
): RouteInfo[] {
  const modulePath = textOf(MODULE_PATH + applicationId, module) ?? textOf(MODULE_PATH, module);
  const method = Reflect.getMetadata(VERB, handler) as RequestMethod;
  const infos: RouteInfo[] = [];
  for (const prefix of listOf(Reflect.getMetadata(PATH, type))) {
    for (const own of listOf(Reflect.getMetadata(PATH, handler))) {
      const path = joinPaths(modulePath, prefix, own);
      for (const version of versionsOf(type, handler)) infos.push({ path, method, version });
    }
  }
  return infos;
}

/** Undefined stands for whatever the application's default is. */
function versionsOf(type: object, handler: object): (Version | undefined)[] {
  const version = (Reflect.getMetadata(VERSION, handler) ?? Reflect.getMetadata(VERSION, type)) as
    | Version
    | Version[]
    | undefined;
  return Array.isArray(version) ? version : [version];
}

function textOf(key: string, target: object): string | undefined {
  return Reflect.getMetadata(key, target) as string | undefined;
}

function listOf(paths: unknown): string[] {
  return [(paths ?? '/') as string | string[]].flat();
}

function joinPaths(...paths: (string | undefined)[]): string {
  const parts = paths.flatMap((path) => path?.split('/') ?? []).filter((part) => part !== '');
  return `/${parts.join('/')}`;
}
