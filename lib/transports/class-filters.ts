import { type ExceptionFilter } from '@nestjs/common';
import { type MetadataScanner, type ModulesContainer } from '@nestjs/core';

/** What Nest makes of the decorators of gateways and message handlers, and of those for filters. */
const IS_GATEWAY = 'websockets:is_gateway';
const PATTERN = 'microservices:pattern';
const FILTERS = '__exceptionFilters__';

/**
 * Gateways meet the global guards of an application, but none of its global filters: each is given
 * this one as the outermost of its own. Before they are connected, which is before any hook runs.
 */
export function bindToGateways(modules: ModulesContainer, filter: ExceptionFilter): void {
  for (const { providers } of modules.values()) {
    for (const { metatype: type } of providers.values()) {
      if (typeof type === 'function' && Reflect.hasMetadata(IS_GATEWAY, type)) bind(type, filter);
    }
  }
}

/**
 * The same for controllers of messages: what `connectMicroservice` adds to an application has none
 * of its global filters, unless it is told to inherit them.
 */
export function bindToMessageControllers(
  modules: ModulesContainer,
  scanner: MetadataScanner,
  filter: ExceptionFilter,
): void {
  for (const { controllers } of modules.values()) {
    for (const { metatype: type } of controllers.values()) {
      if (typeof type === 'function' && takesMessages(type, scanner)) bind(type, filter);
    }
  }
}

function takesMessages(type: object, scanner: MetadataScanner): boolean {
  const { prototype } = type as { prototype: Record<string, object> };
  const names = scanner.getAllMethodNames(prototype);
  return names.some((name) => Reflect.hasMetadata(PATTERN, prototype[name]!));
}

function bind(type: object, filter: ExceptionFilter): void {
  const bound = (Reflect.getMetadata(FILTERS, type) ?? []) as object[];
  // Another application of the same process may have bound its own.
  const others = bound.filter((one) => one.constructor !== filter.constructor);
  Reflect.defineMetadata(FILTERS, [filter, ...others], type);
}
