import { durationMs, type Duration } from '../common/duration.js';
import { type FallbackCall, type FallbackFunction, type FallbackLevels } from './core/contract.js';
import { type Controllers } from './controllers.js';
import { DegradeMessage, type DegradeContext, type DegradeOptions } from './degrade-options.js';
import { degradeContext, type FallbackSubject, type RouteLevels } from './degrade-route.js';

type Method = (context: DegradeContext) => unknown;

/** What the levels of a route are, in the words of the chain. */
export function levelsOf(
  resource: string,
  options: DegradeOptions,
  controllers: Controllers,
): RouteLevels {
  const { level3, blockHandler, fallback, coreFields, schemaVersion, revive } = options;
  const levelsWith = (method: string | undefined): FallbackLevels => ({
    resource,
    shared: ageOf(options.level1, 'level1'),
    process: ageOf(options.level2, 'level2'),
    simplified: method === undefined ? undefined : methodOf(method, controllers),
    standby: standbyOf(options.level4),
    ...{ coreFields, schemaVersion, revive },
  });
  return {
    usual: levelsWith(level3),
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
      (instance as Record<string, Method>)[name]!(contextOf(call));
    return controller instanceof Promise ? controller.then(invoke) : invoke(controller);
  };
}

function standbyOf(level4: unknown): FallbackLevels['standby'] {
  if (level4 === undefined || level4 instanceof DegradeMessage) return undefined;
  if (typeof level4 === 'function') {
    const make = level4 as Method;
    return { make: (call) => make(contextOf(call)) };
  }
  return { value: level4 };
}

function contextOf({ level, reason, error, context, remainingMs }: FallbackCall): DegradeContext {
  return degradeContext(context as FallbackSubject, level, reason, error, remainingMs);
}
