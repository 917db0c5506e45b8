import { type ExecutionContext } from '@nestjs/common';
import { GUARDS } from '../requests/nest-metadata.js';
import { entriesOf } from './route-metadata.js';

/** The guards of this library, which authenticate nobody. */
export const ownGuards = new WeakSet<object>();

/** How to have a handler's callers known by the time that a policy is asked. */
export function orderHint(policy: string, route: string, context: ExecutionContext): string {
  const [handler, type] = [context.getHandler(), context.getClass()];
  const standsOn = (target: object): boolean =>
    entriesOf(target).some(({ what }) =>
      typeof what === 'object'
        ? policy.startsWith(route)
        : what === policy || what instanceof Function,
    );
  const isOfMethod = standsOn(handler);
  if (!isOfMethod && !standsOn(type)) return OF_APP;
  if (hasForeignGuard(isOfMethod ? handler : type)) return ABOVE;
  if (!isOfMethod && hasForeignGuard(handler)) return OF_CLASS;
  return NOBODY;
}

const ABOVE =
  'Guards of a method, and those of a class, run from the last decorator to the first, so write @RateLimit above ' +
  '@UseGuards';
const OF_CLASS =
  '@RateLimit stands on the class, whose guards run before those of methods: put it on the method, or authenticate ' +
  'on the class or globally';
const OF_APP =
  "The guard of 'apply' runs before those of classes and methods: authenticate globally, by APP_GUARD of the root module";
const NOBODY =
  'No guard stands there that has told who it is: authenticate by @UseGuards below @RateLimit, or globally';

function hasForeignGuard(target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS, target) ?? []) as object[];
  return guards.some((guard) => !ownGuards.has(guard));
}
