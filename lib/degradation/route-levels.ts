import { type ExecutionContext } from '@nestjs/common';
import { ContextIdFactory, type ModuleRef } from '@nestjs/core';
import { durationMs, type Duration } from '../common/duration.js';
import { type FallbackCall, type FallbackFunction, type FallbackLevels } from './core/contract.js';
import { DegradeMessage, type DegradeContext, type DegradeOptions } from './degrade-options.js';
import { degradeContext, type FallbackSubject, type RouteLevels } from './degrade-route.js';
import { type Class } from '../requests/nest-metadata.js';

type LevelMethod = (context: DegradeContext) => unknown;

/** The levels of a route, for the fallback chain. */
export function levelsOf(
  resource: string,
  options: DegradeOptions,
  controllers: Controllers,
): RouteLevels {
  const { level3, blockHandler, fallback, coreFields, schemaVersion, revive } = options;
  const levelsWith = (method: string | undefined): FallbackLevels => ({
    resource,
    level1: ageOf(options.level1, 'level1'),
    level2: ageOf(options.level2, 'level2'),
    level3: method === undefined ? undefined : methodOf(method, controllers),
    level4: level4Of(options.level4),
    ...{ coreFields, schemaVersion, revive },
  });
  const usual = levelsWith(level3);
  return {
    usual,
    kept: { ...usual, level3: undefined, level4: undefined },
    limited: levelsWith(blockHandler ?? level3),
    failed: levelsWith(fallback ?? level3),
  };
}

function ageOf(level: Duration | false | undefined, at: string): boolean | number | undefined {
  return level === undefined || level === false ? level : durationMs(level, `@Degrade.${at}`);
}

function methodOf(name: string, controllers: Controllers): FallbackFunction {
  return (call) => {
    const { context } = call.context as FallbackSubject;
    const controller = controllers.of(context);
    const invoke = (instance: object): unknown =>
      (instance as Record<string, LevelMethod>)[name]!(contextOf(call));
    return controller instanceof Promise ? controller.then(invoke) : invoke(controller);
  };
}

function level4Of(level4: unknown): FallbackLevels['level4'] {
  if (level4 === undefined || level4 instanceof DegradeMessage) return undefined;
  if (typeof level4 === 'function') {
    const make = level4 as LevelMethod;
    return { make: (call) => make(contextOf(call)) };
  }
  return { value: level4 };
}

function contextOf({ level, reason, error, context, remainingMs }: FallbackCall): DegradeContext {
  return degradeContext(context as FallbackSubject, level, reason, error, remainingMs);
}

/** Finds the controller that a request was meant for. */
export class Controllers {
  /** Undefined for those that are made anew for each request. */
  private readonly known = new Map<Class, object | undefined>();

  constructor(private readonly modules: ModuleRef) {}

  of(context: ExecutionContext): object | Promise<object> {
    const type = context.getClass<object>();
    return this.find(type) ?? this.ofRequest(type, context);
  }

  /** For work outside of any request. */
  apart(type: Class): object | Promise<object> {
    return this.find(type) ?? this.modules.resolve<object>(type, undefined, { strict: false });
  }

  private find(type: Class): object | undefined {
    if (!this.known.has(type)) this.known.set(type, this.lasting(type));
    return this.known.get(type);
  }

  private lasting(type: Class): object | undefined {
    try {
      return this.modules.get<object>(type, { strict: false });
    } catch {
      return undefined;
    }
  }

  /**
   * Nest keeps the identity of a request of HTTP with it. That of a message is out of reach, so its
   * controller is made once more.
   */
  private ofRequest(type: Class, context: ExecutionContext): Promise<object> {
    const isHttp = context.getType() === 'http';
    const request = isHttp ? context.getArgByIndex<Record<string, unknown>>(0) : undefined;
    const id = ContextIdFactory.getByRequest(request!);
    if (!isHttp) this.modules.registerRequestByContextId(messageOf(context), id);
    return this.modules.resolve<object>(type, id, { strict: false });
  }
}

/** The object that Nest injects as the request of a message. */
function messageOf(context: ExecutionContext): object {
  const [data, own] = context.getArgs<unknown[]>();
  return { data, context: own, getData: () => data, getContext: () => own };
}
