import {
  Catch,
  Inject,
  Optional,
  UseFilters,
  type ExceptionFilter,
  type OnModuleInit,
} from '@nestjs/common';
import { InvalidArgumentError, ModuleMissingError } from '../common/errors.js';
import { ProtectionMissingError } from './errors.js';
import { Protection } from './protection.js';
import { type ResourceOptions } from './resource-options.js';
import { type Failure, type RunContext, type RunOptions } from './run.js';
import { INJECTED_PROPERTIES } from '../requests/nest-metadata.js';

/** Options of `@Protect` beside the name of the resource: those of the resource, a fallback, and details of each call. */
export interface ProtectOptions extends ResourceOptions {
  /** About one call, from the method's arguments: its label, its value, the caller's signal. */
  readonly call?: (...args: never[]) => RunOptions;
  /**
   * Answers in the place of a call that failed, was too slow, or was not let through: a method of the same
   * object, or a function. It is given the failure, and then the arguments of the call.
   */
  readonly fallback?: string | ((failure: Failure, ...args: never[]) => unknown);
}

/** `this` is the object whose method has failed. */
type ProtectFallback = Exclude<NonNullable<ProtectOptions['fallback']>, string>;

/** The options of `@Protect`, kept on the method that it made. */
export interface ProtectedMethod {
  readonly resource: string;
  readonly options: ResourceOptions | undefined;
  /** As in `Class.method`. */
  readonly name: string;
}

type AsyncMethod = (...args: never[]) => Promise<unknown>;

/** Where Nest puts the application's Protection. */
const PROTECTION = Symbol('weir:protection');
const methods = new WeakMap<object, ProtectedMethod>();

/**
 * Protects a method of a provider: `@Protect('db')` as the module's option `protection.db` says,
 * `@Protect('db', { deadline: 200 })` with options of its own, on which those of the module are
 * laid. The method has to return a promise.
 *
 * Nest itself gives the object what it needs, as if it had a property with `@Inject(Protection)`;
 * so several applications in one process do not meet, and nothing has to be said in main.ts. A unit
 * test may make the object without the module; the method then rejects.
 */
export function Protect(resource: string, settings: ProtectOptions = {}) {
  if (typeof resource !== 'string' || resource === '') {
    throw new InvalidArgumentError('@Protect', resource, 'the name of a resource');
  }
  const { call, fallback, ...given } = settings;
  const options = Object.keys(given).length === 0 ? undefined : given;
  return <M extends (...args: never[]) => Promise<unknown>>(
    target: object,
    key: string | symbol,
    descriptor: TypedPropertyDescriptor<M>,
  ): void => {
    const method = descriptor.value;
    if (typeof method !== 'function') {
      throw new InvalidArgumentError(`@Protect('${resource}')`, String(key), 'a method');
    }
    const told = { resource, options, name: `${target.constructor.name}.${String(key)}` };
    checkFallback(`@Protect('${resource}').fallback`, fallback, target);
    const wrapped = wrap(method, told, call, fallback);
    copyMetadata(method, wrapped);
    methods.set(wrapped, told);
    descriptor.value = wrapped as M;
    injectInto(target);
    UseFilters(ProtectionPresence)(target, key, descriptor);
  };
}

/** The run of the method that is being called. To be read before its first `await`. */
export function currentRun(): RunContext | undefined {
  return current;
}

let current: RunContext | undefined;

export const protectedMethodOf = (method: object): ProtectedMethod | undefined =>
  methods.get(method);

/** For objects that Nest did not make itself, but was given by a factory. */
export function protectWith(instance: object, protection: Protection): void {
  if (PROTECTION in instance) return;
  Object.defineProperty(instance, PROTECTION, { value: protection, configurable: true });
}

function wrap(
  method: AsyncMethod,
  { resource, options, name }: ProtectedMethod,
  call: ((...args: never[]) => RunOptions) | undefined,
  fallback: ProtectOptions['fallback'],
): AsyncMethod {
  return function (this: { [PROTECTION]?: Protection }, ...args: never[]): Promise<unknown> {
    const protection = this[PROTECTION];
    if (protection === undefined) {
      return Promise.reject(new ProtectionMissingError(resource, name));
    }
    const work = (run: RunContext): Promise<unknown> => {
      const outer = current;
      current = run;
      try {
        return method.apply(this, args);
      } finally {
        current = outer;
      }
    };
    let about: RunOptions | undefined;
    try {
      // A module that was loaded later has not been looked through at the start.
      if (options !== undefined && !protection.has(resource)) protection.declare(resource, options);
      about = call?.(...args);
    } catch (error) {
      // The caller of a method that returns a promise looks for errors there.
      return rejected(error);
    }
    if (fallback === undefined) return protection.run(resource, work, about, args);
    const instead = (failure: Failure): unknown => {
      const answer = typeof fallback === 'string' ? (this as FallbackMethods)[fallback]! : fallback;
      return answer.call(this, failure, ...args);
    };
    return protection.run(resource, work, { ...about, fallback: instead }, args);
  };
}

type FallbackMethods = Record<string, ProtectFallback>;

/** Methods are there before decorators run, so that a misspelt one is known at once. */
function checkFallback(at: string, fallback: unknown, target: object): void {
  if (fallback === undefined || typeof fallback === 'function') return;
  const isMethod =
    typeof fallback === 'string' && typeof (target as FallbackMethods)[fallback] === 'function';
  if (isMethod) return;
  const what = `a function, or the name of a method of ${target.constructor.name}`;
  throw new InvalidArgumentError(at, fallback, what);
}

async function rejected(error: unknown): Promise<never> {
  await Promise.resolve();
  throw error;
}

/** Other decorators, below this one, have left their marks on the method. */
function copyMetadata(from: object, to: object): void {
  for (const key of Reflect.getOwnMetadataKeys(from)) {
    Reflect.defineMetadata(key, Reflect.getOwnMetadata(key, from), to);
  }
  const { name } = from as { name: string };
  Object.defineProperty(to, 'name', { value: name, configurable: true });
}

function injectInto(target: object): void {
  const known = Reflect.getMetadata(INJECTED_PROPERTIES, target.constructor) as
    | readonly { readonly key: unknown }[]
    | undefined;
  if (known?.some(({ key }) => key === PROTECTION)) return;
  Inject(Protection)(target, PROTECTION);
  Optional()(target, PROTECTION);
}

/** Nobody throws it: the filter is there for its hook. */
class Never extends Error {}

/**
 * Stops the start of an application that has `@Protect` but not the module. Nest makes filters for
 * every module whose classes name them, also for those of providers, and runs their hooks.
 */
@Catch(Never)
export class ProtectionPresence implements ExceptionFilter<Never>, OnModuleInit {
  constructor(
    @Optional() @Inject(Protection) private readonly protection: Protection | undefined,
  ) {}

  onModuleInit(): void {
    if (this.protection === undefined) throw new ModuleMissingError('@Protect');
  }

  catch(error: Never): never {
    throw error;
  }
}
