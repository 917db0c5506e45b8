import { type Logger } from '@nestjs/common';
import { InvalidArgumentError } from '../common/errors.js';
import { type HandlerExplorer } from '../requests/handlers.js';
import {
  FILTERS,
  GATEWAY_MESSAGE,
  GRAPHQL,
  GRAPHQL_OPTIONS,
  GUARDS,
  INTERCEPTORS,
  IS_GATEWAY,
  MESSAGE_PATTERN,
  OBJECT_FIELD,
  PATH,
  PIPES,
  type Class,
} from '../requests/nest-metadata.js';
import { RateLimitGuard } from './rate-limit.guard.js';
import { entriesOf } from './route-metadata.js';

/** Metadata that decorators of guards, filters, interceptors and pipes leave on a method. */
const ENHANCERS = [GUARDS, FILTERS, INTERCEPTORS, PIPES];
/** Metadata of TypeScript and of this library. */
const OWN_METADATA = /^(design:|weir:)/;

/** A class of the application, and one of its methods if that is what carries the decorator. */
interface Limited {
  readonly type: Class;
  readonly name: string;
  readonly isController: boolean;
}

/**
 * Finds every `@RateLimit` that limits nothing, as no guard runs where it stands: on methods of
 * services above all. A limit is never silently off.
 */
export class UnmetLimits {
  constructor(private readonly explorer: HandlerExplorer) {}

  /** Throws; where another framework may run the guards, which cannot be known here, it warns. */
  check(logger: Pick<Logger, 'warn'>): void {
    for (const limited of this.limitedMethods()) {
      const { type, name } = limited;
      const handler = (type.prototype as Record<string, object>)[name]!;
      if (this.isIdleField(handler)) throw idleField(`${type.name}.${name}`);
      if (isMet(limited, handler)) continue;
      const foreign = foreignMetadata(type, name, handler);
      if (foreign.length === 0) throw unmet(`${type.name}.${name}`);
      logger.warn(
        `@RateLimit on ${type.name}.${name} holds only if what calls it (${foreign.join(', ')}) runs Nest's ` +
          'guards, which most do not: to be sure, ask the RateLimiter there.',
      );
    }
    for (const { type } of this.limitedServices()) throw unmet(type.name);
  }

  /** A guard that somebody has bound by hand, where nothing says what to limit: as @nestjs/throttler wants it. */
  warnOfIdleGuards(logger: Pick<Logger, 'warn'>): void {
    const warn = (where: string): void =>
      logger.warn(
        `RateLimitGuard ${where} limits nothing, as nothing says what to limit: write @RateLimit('name'), which ` +
          "brings its guard along, or apply: ['name'] in forRoot for all routes.",
      );
    for (const { isGlobalGuard, type } of this.explorer.providers()) {
      if (isGlobalGuard && type === RateLimitGuard) warn('as APP_GUARD');
    }
    for (const { type, handler, name } of this.explorer.handlers()) {
      if (!this.explorer.serves(handler) || entriesOf(type).length + entriesOf(handler).length > 0)
        continue;
      if (isGuarded(type) || isGuarded(handler)) warn(`on ${type.name}.${name}`);
    }
  }

  /** A field of an object, and no driver of GraphQL runs guards for those. */
  private isIdleField(handler: object): boolean {
    if (!Reflect.hasMetadata(OBJECT_FIELD, handler)) return false;
    const drivers = [...this.explorer.providers()].filter(({ token }) => token === GRAPHQL_OPTIONS);
    const runsGuards = drivers.some(({ instance }) => {
      const options = instance as { fieldResolverEnhancers?: readonly string[] } | undefined;
      return options?.fieldResolverEnhancers?.includes('guards');
    });
    return drivers.length > 0 && !runsGuards;
  }

  private *limitedMethods(): Iterable<Limited> {
    for (const found of this.classes()) {
      for (const name of this.explorer.methodNamesOf(found.type.prototype as object)) {
        const method = (found.type.prototype as Record<string, object>)[name]!;
        if (entriesOf(method).length > 0) yield { ...found, name };
      }
    }
  }

  /** Classes with the decorator of which no method is met, nor may be by another framework. */
  private *limitedServices(): Iterable<{ type: Class }> {
    for (const found of this.classes()) {
      if (found.isController || entriesOf(found.type).length === 0) continue;
      const isHopeful = this.explorer.methodNamesOf(found.type.prototype as object).some((name) => {
        const method = (found.type.prototype as Record<string, object>)[name]!;
        const isForeign = foreignMetadata(found.type, name, method).length > 0;
        return isMet({ ...found, name }, method) || isForeign;
      });
      if (!isHopeful) yield found;
    }
  }

  private *classes(): Iterable<{ type: Class; isController: boolean }> {
    const found = [...this.explorer.providers()];
    const controllers = new Set(found.filter((one) => one.isController).map(({ type }) => type));
    const seen = new Set<Class>();
    for (const { instance } of found) {
      // The classes of instances that a factory has made, too.
      const type = classOf(instance);
      if (type === undefined || seen.has(type)) continue;
      seen.add(type);
      yield { type, isController: controllers.has(type) };
    }
  }
}

function isGuarded(target: object): boolean {
  const guards = (Reflect.getMetadata(GUARDS, target) ?? []) as unknown[];
  return guards.includes(RateLimitGuard);
}

function classOf(instance: unknown): Class | undefined {
  if (typeof instance !== 'object' || instance === null) return undefined;
  const prototype: unknown = Object.getPrototypeOf(instance);
  if (prototype === null || prototype === Object.prototype) return undefined;
  const type: unknown = (prototype as { constructor?: unknown }).constructor;
  return typeof type === 'function' && type.prototype === prototype ? (type as Class) : undefined;
}

/** Whether Nest calls the method through its guards. */
function isMet({ type, isController }: Limited, handler: object): boolean {
  const has = (key: string): boolean => Reflect.hasMetadata(key, handler);
  if (isController && (has(PATH) || has(MESSAGE_PATTERN))) return true;
  if (Reflect.hasMetadata(IS_GATEWAY, type) && has(GATEWAY_MESSAGE)) return true;
  return Reflect.getMetadataKeys(handler).some((key) => String(key).startsWith(GRAPHQL));
}

/** Metadata of others on the method, by name. */
function foreignMetadata(type: Class, name: string, handler: object): string[] {
  const prototype = type.prototype as object;
  const onMethod = Reflect.getMetadataKeys(handler) as unknown[];
  const keys = [...onMethod, ...(Reflect.getMetadataKeys(prototype, name) as unknown[])];
  const names = keys.map((key) =>
    typeof key === 'symbol' ? (key.description ?? '') : String(key),
  );
  return names.filter((one) => !ENHANCERS.includes(one) && !OWN_METADATA.test(one));
}

function idleField(where: string): InvalidArgumentError {
  const expectation = "fieldResolverEnhancers: ['guards'] in the options of GraphQLModule";
  return new InvalidArgumentError(
    `@RateLimit on ${where}`,
    where,
    expectation,
    `@RateLimit on ${where} limits nothing: Nest guards fields of objects only with ${expectation}. Or put it on ` +
      'the query that gives the object',
  );
}

function unmet(where: string): InvalidArgumentError {
  const expectation = 'a handler of a controller, gateway or resolver';
  return new InvalidArgumentError(
    `@RateLimit on ${where}`,
    where,
    expectation,
    `@RateLimit on ${where} limits nothing, as no guard runs there: it is for ` +
      'handlers of controllers, gateways and resolvers. In a service inject RateLimiter and call tryAcquire, or ' +
      'put @Protect on the method',
  );
}
