import { type Clock } from '../common/clock.js';
import { InvalidArgumentError } from '../common/errors.js';
import { SingleFlight } from '../common/single-flight.js';
import { plainObject, rejectUnknown } from '../common/validate.js';
import { outcomeOf, type Resource } from './resource.js';
import { BigValueError, ProtectionMissingError } from './errors.js';
import {
  callersDueAt,
  callersSignal,
  type Failure,
  type RunContext,
  type RunOptions,
  type Work,
} from './run.js';

/** There is no such thing, and the step knows that. It is an answer: no later step runs. */
export const ABSENT: unique symbol = Symbol.for('nestjs-weir:absent');
/** It is too big to be kept here: this place knows nothing of it, and need not be offered it again. */
export const TOO_BIG: unique symbol = Symbol.for('nestjs-weir:too-big');

/** The type of `ABSENT`. */
export type Absent = typeof ABSENT;
/** The type of `TOO_BIG`. */
export type TooBig = typeof TOO_BIG;

/** The result of a step: a value or a marker; nothing if it does not know. */
export type Found<T> = T | Absent | TooBig | undefined | null;

/** One of the places where a value may be found. */
export interface Step<T> {
  /** The resource that protects it; without one only the deadline of all steps does. */
  readonly resource?: string;
  readonly run: (run: RunContext) => Found<T> | PromiseLike<Found<T>>;
  /**
   * Keeps what a later step has found, or the marker ABSENT, or TOO_BIG in the place of a value above
   * `maxValueBytes`. Nobody waits for it, and if it fails the resource has failed, and no caller.
   */
  readonly keep?: (value: T | Absent | TooBig, run: RunContext) => unknown;
}

/** About all steps together. */
export interface StepsOptions extends Pick<
  RunOptions,
  'signal' | 'parent' | 'deadlineMs' | 'label'
> {
  /** Calls with the same key at the same time share one walk through the steps. */
  readonly key?: string;
}

export interface FallbacksDeps {
  readonly clock: Clock;
  /** Throws if there is none of that name. */
  readonly find: (resource: string) => Resource;
  /** For work that no resource protects: only the caller's own time and signal hold. */
  readonly bare: Resource;
}

const KNOWN_STEP: readonly (keyof Step<unknown>)[] = ['resource', 'run', 'keep'];
const KNOWN_OPTIONS: readonly (keyof StepsOptions)[] = [
  ...(['signal', 'parent', 'deadlineMs', 'label', 'key'] as const),
];

/** Other answers in the place of those that cannot be had. */
export class Fallbacks {
  private readonly flights = new SingleFlight<unknown>();

  constructor(private readonly deps: FallbacksDeps) {}

  /** Does the work, and `options.fallback` if that fails. */
  async run(
    resource: Resource,
    work: Work<unknown>,
    options: RunOptions,
    args = options.args,
  ): Promise<unknown> {
    const { fallback, ...own } = options;
    if (typeof fallback !== 'function') {
      throw new InvalidArgumentError('run.fallback', fallback, 'a function');
    }
    const caller = this.callerOf(own);
    try {
      return await resource.run(work, own, args);
    } catch (error) {
      if (!this.isReplaceable(error, resource, caller)) throw error;
      resource.replaced(error);
      const instead = (run: RunContext) => fallback(new FailedRun(resource.name, error, run));
      return this.deps.bare.run(instead, this.optionsOf(caller));
    }
  }

  /** The answer of the first step that has one; undefined if there is no such thing. */
  async firstOf<T>(steps: readonly Step<T>[], options: StepsOptions = {}): Promise<T | undefined> {
    const resources = this.check(steps, options);
    const caller = this.callerOf(options);
    const { key } = options;
    if (key === undefined) return this.walk(steps, resources, caller);
    // A walk that ends before this caller gives up is of no use to it.
    const joined = this.flights.join(key, (until) => until >= caller.dueAt);
    const answer = joined ?? this.begin(key, steps, resources, caller);
    // A caller gives up for itself: others may be waiting for the same walk.
    return this.deps.bare.run(() => answer, this.optionsOf(caller)) as Promise<T | undefined>;
  }

  private check<T>(steps: readonly Step<T>[], options: StepsOptions): Resource[] {
    plainObject('firstOf.options', options, 'an object');
    rejectUnknown('firstOf.options', options, KNOWN_OPTIONS);
    if (!Array.isArray(steps) || steps.length === 0) {
      throw new InvalidArgumentError('firstOf.steps', steps, 'a list of at least one step');
    }
    return (steps as readonly Step<T>[]).map((step, i) => {
      const at = `firstOf.steps.${i}`;
      plainObject(at, step, 'an object');
      rejectUnknown(at, step, KNOWN_STEP);
      if (typeof step.run !== 'function') {
        throw new InvalidArgumentError(`${at}.run`, step.run, 'a function');
      }
      if (step.keep !== undefined && typeof step.keep !== 'function') {
        throw new InvalidArgumentError(`${at}.keep`, step.keep, 'a function');
      }
      return step.resource === undefined ? this.deps.bare : this.deps.find(step.resource);
    });
  }

  private begin<T>(
    key: string,
    steps: readonly Step<T>[],
    resources: readonly Resource[],
    { dueAt, label }: Caller,
  ): Promise<unknown> {
    const now = this.deps.clock.now();
    // Callers that join later have as much time, and so has the walk.
    const until = now + 2 * (dueAt - now);
    const all = { dueAt: until, label, signal: undefined };
    const answer = this.flights.begin(key, this.walk(steps, resources, all), until);
    answer.catch(() => {
      // The callers that wait for it learn of it; none may be left.
    });
    return answer;
  }

  private async walk<T>(
    steps: readonly Step<T>[],
    resources: readonly Resource[],
    caller: Caller,
  ): Promise<T | undefined> {
    /** Steps that keep what a later one finds. */
    const open: number[] = [];
    for (const [i, step] of steps.entries()) {
      const resource = resources[i]!;
      const isLast = i === steps.length - 1;
      let found: Found<T>;
      try {
        found = (await resource.run(step.run, this.optionsOf(caller))) as Found<T>;
      } catch (error) {
        if (isLast || !this.isReplaceable(error, resource, caller)) throw error;
        resource.replaced(error);
        continue;
      }
      const isKnown = found !== undefined && found !== null && found !== TOO_BIG;
      if (isKnown || (isLast && found !== TOO_BIG)) {
        const value = isKnown ? (found as T | Absent) : ABSENT;
        for (const n of open) this.keep(steps[n]!, resources[n]!, value, caller.label);
        return value === ABSENT ? undefined : value;
      }
      if (found !== TOO_BIG && step.keep !== undefined) open.push(i);
    }
    return undefined;
  }

  /** Not waited for. A value that is too big leaves a marker, so that it is not offered each time. */
  private keep<T>(
    { keep }: Step<T>,
    resource: Resource,
    value: T | Absent,
    label: RunOptions['label'],
  ): void {
    const about = { label, ...(value !== ABSENT && { value }) };
    resource
      .run((run) => keep!(value, run), about)
      .catch((error: unknown) => {
        if (!(error instanceof BigValueError)) return resource.replaced(error);
        return resource.run((run) => keep!(TOO_BIG, run), { label });
      })
      .catch((error: unknown) => resource.replaced(error));
  }

  /**
   * Whether another answer may stand in for this error. It may not if it is an answer itself, if the
   * caller has gone or has no time left, or if the program is wrong.
   */
  private isReplaceable(error: unknown, { settings }: Resource, caller: Caller): boolean {
    if (caller.signal?.aborted === true || caller.dueAt <= this.deps.clock.now()) return false;
    if (error instanceof InvalidArgumentError || error instanceof ProtectionMissingError)
      return false;
    return outcomeOf(error, settings.isFailure) !== 'success';
  }

  private callerOf(options: Omit<StepsOptions, 'key'>): Caller {
    const dueAt = callersDueAt(options, this.deps.clock.now());
    return { dueAt, signal: callersSignal(options), label: options.label };
  }

  /** The rest of the caller's time, for the next run on its behalf. */
  private optionsOf({ dueAt, signal, label }: Caller): RunOptions {
    const deadlineMs =
      dueAt === Infinity ? undefined : Math.max(dueAt - this.deps.clock.now(), 1) / 1000;
    return { deadlineMs, signal, label };
  }
}

/** The caller of all steps, and its time. */
interface Caller {
  readonly dueAt: number;
  readonly signal: AbortSignal | undefined;
  readonly label: RunOptions['label'];
}

/** The failure that a fallback answers for. */
class FailedRun implements Failure {
  constructor(
    readonly resource: string,
    readonly error: unknown,
    private readonly run: RunContext,
  ) {}

  get signal(): AbortSignal {
    return this.run.signal;
  }

  get remainingMs(): number {
    return this.run.remainingMs;
  }
}
