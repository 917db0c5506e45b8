import { type MiddlewareConsumer, type RequestMethod } from '@nestjs/common';

/** Where Nest keeps what stands in @Controller, @Get, @Version and RouterModule. */
const PATH = 'path';
const METHOD = 'method';
const VERSION = '__version__';
const MODULE_PATH = '__module_path__';

/** Nest exports the type from nowhere. */
export type RouteInfo = Extract<
  Parameters<ReturnType<MiddlewareConsumer['apply']>['forRoutes']>[number],
  { path: string }
>;

type Target = object;
type Version = NonNullable<RouteInfo['version']>;

/** The paths under which a handler is served, less what Nest puts before all of them. */
export function routeInfosOf(
  module: Target,
  type: Target,
  handler: Target,
  applicationId: string,
): RouteInfo[] {
  const modulePath = textOf(MODULE_PATH + applicationId, module) ?? textOf(MODULE_PATH, module);
  const method = Reflect.getMetadata(METHOD, handler) as RequestMethod;
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
function versionsOf(type: Target, handler: Target): (Version | undefined)[] {
  const version = (Reflect.getMetadata(VERSION, handler) ?? Reflect.getMetadata(VERSION, type)) as
    Version | Version[] | undefined;
  return Array.isArray(version) ? version : [version];
}

function textOf(key: string, target: Target): string | undefined {
  return Reflect.getMetadata(key, target) as string | undefined;
}

function listOf(paths: unknown): string[] {
  return [(paths ?? '/') as string | string[]].flat();
}

function joinPaths(...paths: (string | undefined)[]): string {
  const parts = paths.flatMap((path) => path?.split('/') ?? []).filter((part) => part !== '');
  return `/${parts.join('/')}`;
}
