import { SystemClock, type Clock } from '../common/clock.js';
import { InvalidArgumentError, mustStay, UnknownPolicyError } from '../common/errors.js';
import { EventHub } from '../common/event-hub.js';
import { type LogLinear } from '../common/histogram.js';
import { newIncarnation } from '../common/ids.js';
import { A_NAME, NAME, oneOf, plainObject } from '../common/validate.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { BREAKER_MODES, type BreakerMode } from './breaker.js';
import { UnknownResourceError } from './errors.js';
import { PROTECTION_EVENTS, type ProtectionEvents } from './events.js';
import { Fallbacks, type Step, type StepsOptions } from './fallbacks.js';
import {
  checkShape,
  compileResource,
  joinOptions,
  sameSettings,
  type ResourceInput,
  type ResourceOptions,
  type ResourceSettings,
  type ResourcesInput,
} from './resource-options.js';
import { type ResourceStats } from './resource-stats.js';
import { Resource, type ResourceDeps } from './resource.js';
import { type RunOptions, type Work } from './run.js';
import { TimerWheel } from './timer-wheel.js';

/** The dependencies of `new Protection`, outside Nest. */
export interface ProtectionDeps {
  /** The source of time; tests bring their own. */
  readonly clock?: Clock;
  /** The limiter that has the policies which `rate` names. */
  readonly limiter?: RateLimiter;
  /** False: work is done as if nothing protected it. Default: true. */
  readonly enabled?: boolean;
  /** Nodes with other seeds try at other times whether a resource is back. Default: random. */
  readonly seed?: string;
}

const AT = 'protection';
/** The resource of work without one: fallbacks, and steps that name none. */
const BARE = '(fallback)';

/** Asked for only if a resource has a rate. */
type PolicyNames = () => readonly string[];

/** Protects the resources of a process: its database, its caches, the services it calls. */
export class Protection {
  private readonly resources = new Map<string, Resource>();
  private readonly events = new EventHub<ProtectionEvents>(PROTECTION_EVENTS);
  private readonly deps: ResourceDeps;
  private readonly seed: string;
  private readonly fallbacks: Fallbacks;
  /** Where all work runs if nothing is protected. */
  private readonly instead: Resource | undefined;
  /** The options of decorators, on which all others are laid. */
  private readonly declared = new Map<string, ResourceInput>();
  /** Resources that the code names may change, but not disappear. */
  private readonly ofCode = new Map<string, ResourceInput>();
  private given: ResourcesInput;

  constructor(resources: ResourcesInput = {}, deps: ProtectionDeps = {}) {
    const { clock = new SystemClock(), limiter, seed = newIncarnation(), enabled = true } = deps;
    this.deps = { clock, wheel: new TimerWheel(clock), events: this.events, limiter };
    this.seed = seed;
    const bare = new Resource(BARE, compileResource(BARE, {}, seed), this.deps);
    this.instead = enabled ? undefined : bare;
    const find = (name: string): Resource => this.find(name);
    this.fallbacks = new Fallbacks({ clock, bare, find });
    plainObject(AT, resources, 'an object of resources by name');
    this.given = resources;
    for (const [name, input] of Object.entries(resources)) {
      this.ofCode.set(name, input);
      this.add(name, this.compile(name, input));
    }
  }

  /**
   * Does the work, protected as the resource's options say. The answer is that of the work, or one
   * of `DeadlineExceededError`, `BulkheadRejectedError`, `BreakerOpenError`, `BigValueError`,
   * `ProtectionRejectedError` and the reason of the caller's signal.
   */
  run<T>(name: string, work: Work<T>, options?: RunOptions, args = options?.args): Promise<T> {
    const resource = this.resources.get(name);
    if (resource === undefined) return Promise.reject(this.unknown(name));
    if (this.instead !== undefined) return this.instead.run(work, options) as Promise<T>;
    if (options?.fallback === undefined) return resource.run(work, options, args) as Promise<T>;
    return this.fallbacks.run(resource, work, options, args) as Promise<T>;
  }

  /**
   * Asks one place after the other, each under its own resource, until one has an answer: a cache, then a
   * local one, then the database. Those before it are given what was found, to keep. Undefined if there is
   * no such thing; the last step's error if that has failed.
   */
  firstOf<T>(steps: readonly Step<T>[], options?: StepsOptions): Promise<T | undefined> {
    return this.fallbacks.firstOf(steps, options);
  }

  has(name: string): boolean {
    return this.resources.has(name);
  }

  /** Throws if the value is bigger than the resource's `maxValueBytes`. */
  checkValue(name: string, value: unknown): void {
    this.find(name).checkValue(value);
  }

  /** As an operator wants it, until its options change. */
  switchBreaker(name: string, mode: BreakerMode): void {
    oneOf('mode', mode, BREAKER_MODES);
    if (this.find(name).switchBreaker(mode)) return;
    throw new InvalidArgumentError(`${AT}.${name}.breaker`, undefined, 'a breaker to switch');
  }

  /** Listens; the result stops listening. */
  on<N extends keyof ProtectionEvents>(
    name: N,
    listener: (event: ProtectionEvents[N]) => void,
  ): () => void {
    return this.events.on(name, listener);
  }

  /** Counts since the start, by resource. */
  stats(): Readonly<Record<string, ResourceStats>> {
    return Object.fromEntries(Array.from(this.resources, ([name, one]) => [name, one.stats()]));
  }

  /** @internal How long the work of a resource took; undefined if there is none of that name. */
  timesOf(name: string): LogLinear | undefined {
    return this.resources.get(name)?.times;
  }

  /**
   * The options of a decorator, on which those of the module are laid. Two decorators with different
   * options for one resource are an error, since neither could be preferred.
   * @internal
   */
  declare(name: string, input: ResourceInput): void {
    const before = this.declared.get(name);
    if (before !== undefined && !sameSettings(joinOptions(before), joinOptions(input))) {
      throw new InvalidArgumentError(
        `@Protect('${name}')`,
        input,
        'the same options wherever they are given, or no more than once',
      );
    }
    this.declared.set(name, input);
    const settings = this.compile(name, joinOptions(input, this.given[name]));
    const resource = this.resources.get(name);
    if (resource === undefined) this.add(name, settings);
    else resource.apply(settings);
  }

  /** That every `rate` names a policy that there is. @internal */
  checkRates(): void {
    const policies = (): readonly string[] => this.policyNames();
    for (const [name, { settings }] of this.resources) this.checkRate(name, settings, policies);
  }

  /**
   * Checks a complete set of resources, and gives what puts it into force: that is done at once and
   * cannot fail. What has not changed keeps its state, and what code has named has to stay. `policies`
   * are those that a `rate` may name from then on, where they change as well.
   */
  prepare(
    resources: ResourcesInput,
    policies: () => readonly string[] = () => this.policyNames(),
  ): () => void {
    plainObject(AT, resources, 'an object of resources by name');
    const next = new Map<string, ResourceSettings>();
    for (const name of this.ofCode.keys()) {
      if (!Object.hasOwn(resources, name)) {
        throw mustStay(`${AT}.${name}`, 'the code');
      }
    }
    for (const name of new Set([...this.declared.keys(), ...Object.keys(resources)])) {
      if (!NAME.test(name)) throw new InvalidArgumentError(`${AT}.${name}`, name, A_NAME);
      const settings = this.compile(name, this.whole(name, resources));
      this.checkRate(name, settings, policies);
      next.set(name, settings);
    }
    return () => this.commit(resources, next);
  }

  private commit(resources: ResourcesInput, next: ReadonlyMap<string, ResourceSettings>): void {
    this.given = resources;
    // A resource that a decorator has named meanwhile stays.
    for (const name of this.resources.keys()) {
      if (!next.has(name) && !this.declared.has(name)) this.resources.delete(name);
    }
    for (const [name, settings] of next) {
      const resource = this.resources.get(name);
      if (resource === undefined) this.add(name, settings);
      else if (!sameSettings(resource.settings, settings)) resource.apply(settings);
    }
  }

  /** A document holds no functions: those of the code hold on. */
  private whole(name: string, resources: ResourcesInput): ResourceInput {
    const declared = this.declared.get(name);
    const ofCode = joinOptions(declared, this.ofCode.get(name));
    if (resources[name] === undefined) return withFunctions(joinOptions(declared), ofCode);
    checkShape(`${AT}.${name}`, resources[name]);
    return withFunctions(joinOptions(declared, resources[name]), ofCode);
  }

  private compile(name: string, input: ResourceInput): ResourceSettings {
    const settings = compileResource(`${AT}.${name}`, input, this.seed);
    if (settings.rate !== undefined && this.deps.limiter === undefined) {
      throw new InvalidArgumentError(`${AT}.${name}.rate`, settings.rate, 'a limiter beside it');
    }
    return settings;
  }

  private checkRate(name: string, { rate }: ResourceSettings, policies: PolicyNames): void {
    if (rate === undefined || policies().includes(rate.policy)) return;
    const { message } = new UnknownPolicyError(rate.policy, policies());
    throw new InvalidArgumentError(
      `${AT}.${name}.rate`,
      rate.policy,
      'a policy',
      `${AT}.${name}.rate: ${message}`,
    );
  }

  private policyNames(): readonly string[] {
    return this.deps.limiter?.policyNames() ?? [];
  }

  private add(name: string, settings: ResourceSettings): void {
    this.resources.set(name, new Resource(name, settings, this.deps));
  }

  private find(name: string): Resource {
    const resource = this.resources.get(name);
    if (resource === undefined) throw this.unknown(name);
    return this.instead ?? resource;
  }

  private unknown(name: string): UnknownResourceError {
    return new UnknownResourceError(name, [...this.resources.keys()]);
  }
}

/** The same options with the functions of others, wherever they have none but the group that it is of. */
function withFunctions(options: ResourceOptions, from: ResourceOptions): ResourceOptions {
  const { isFailure } = from;
  const key = typeof from.rate === 'object' ? from.rate.key : undefined;
  const isRefusal = typeof from.throttle === 'object' ? from.throttle.isRefusal : undefined;
  const { rate, throttle } = options;
  return {
    ...options,
    ...(isFailure !== undefined && { isFailure }),
    ...(typeof rate === 'object' && typeof key === 'function' && { rate: { key, ...rate } }),
    ...(typeof throttle === 'object' && isRefusal && { throttle: { isRefusal, ...throttle } }),
  };
}
