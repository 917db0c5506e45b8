import { createHash } from 'node:crypto';
import { InvalidArgumentError } from '../common/errors.js';
import { type RateLimiter } from '../limiter/rate-limiter.js';
import { ByHandler, methodNameOf, type NamedHandler } from '../requests/by-handler.js';
import { PATH, type Class, type Handler } from '../requests/nest-metadata.js';
import { paramsOf } from './key-resolver.js';
import {
  costOf,
  entriesOf,
  handsOver,
  skipOf,
  type PolicyChoice,
  type RateLimitEntry,
} from './route-metadata.js';
import { paramNamesOf, routePlaceOf, type ParamNames, type ServedPath } from './route-place.js';
import { RoutePlan } from './route-plan.js';
import { type RoutePolicies } from './route-policies.js';
import { type AppliedPolicy, type RouteFields } from './route-policy.js';

export interface RouteTableSettings {
  /** Policies of every route, by name; or the app's quota alone. */
  readonly apply: readonly string[] | 'quota' | undefined;
  /** There is a quota, and the options say whose. */
  readonly hasQuota: boolean;
  /** False: routes are checked, and none is limited. */
  readonly enabled?: boolean;
  /** The most that a request may cost it. */
  readonly maxCost: number;
  /** All handlers of the application: to see which of them have one name. */
  readonly handlers: () => Iterable<NamedHandler>;
  /** The paths of HTTP under which a handler is served. */
  readonly pathsOf: (type: Class, handler: Handler) => readonly ServedPath[];
}

/**
 * The plan of every handler, made when it is first needed: requests may come before a module is
 * initialised. At start all are made once, so that a fault of one is known by then.
 */
export class RouteTable {
  private readonly plans = new ByHandler((type, handler) => this.makePlan(type, handler));
  /** All of them, and what parts each. */
  private readonly figureListeners: (() => void)[] = [];
  private readonly all = new Map<RoutePlan, () => void>();
  /** Of those whose values are known to have names, and the policies that decorators ask for there. */
  private readonly named = new Map<RoutePlan, { names: ParamNames; asked: AppliedPolicy[] }>();
  private readonly ids = new Set<string>();
  private namesakes: ReadonlyMap<string, readonly NamedHandler[]> | undefined;
  private maxCost: number;

  constructor(
    private readonly routePolicies: RoutePolicies,
    private readonly limiter: RateLimiter,
    private readonly settings: RouteTableSettings,
  ) {
    this.maxCost = settings.maxCost;
  }

  planOf(type: Class, handler: Handler): RoutePlan {
    return this.plans.of(type, handler);
  }

  /** The limits are other ones from now on, and so may be their keys. */
  forgetFigures(): void {
    for (const [plan, part] of this.all) {
      plan.forgetFigures();
      part();
    }
    for (const listener of this.figureListeners) listener();
  }

  /** Calls back whenever limits have changed: headers, for one, remember figures as text. */
  onNewFigures(listener: () => void): void {
    this.figureListeners.push(listener);
  }

  /**
   * Throws if a route charges the quota and takes more than one request may cost. `costs` are those of
   * policies as they are to be. The result makes `maxCost` the one that later routes are checked by.
   */
  prepareCosts(maxCost: number, costs: (policy: string) => number | undefined): () => void {
    for (const plan of this.all.keys()) checkCosts(plan, maxCost, costs);
    return () => (this.maxCost = maxCost);
  }

  /** Throws if the key of a policy would mean nothing on a route that has it. */
  checkKeys(keyOf: (policy: string) => unknown): void {
    for (const [plan, { names, asked }] of this.named) {
      for (const { name } of asked) checkParams(plan, name, paramsOf(keyOf(name)), names);
    }
  }

  /** After all routes were seen, which bring policies of their own. */
  checkOverrides(): void {
    this.routePolicies.checkOverrides();
  }

  /** Policies of `apply` must exist, even if no handler has been seen yet. */
  checkApplied(): void {
    const entries = this.appliedToAll();
    for (const { what } of entries) {
      if (what !== undefined) this.routePolicies.use(what as string, 'apply');
    }
    this.usesQuota('apply', entries);
  }

  private makePlan(type: Class, handler: Handler): RoutePlan {
    const id = this.idOf(type, handler);
    const own = entriesOf(handler);
    const stages = [this.appliedToAll(), entriesOf(type), own];
    const entries = stages.flat();
    const skip = skipOf(handler) ?? (own.length > 0 ? undefined : skipOf(type));
    for (const name of skip ?? []) this.routePolicies.use(name, `@SkipRateLimit on ${id}`);
    if (skip?.length === 0 || entries.length === 0) {
      return this.emptyPlan(id);
    }
    const choices = entries.map(({ what }) => what).filter((what) => typeof what === 'function');
    // The same name again is the same policy: it is charged once, where it stands closest.
    const [ofApp, ofClass, ofMethod] = withoutReplaced(id, stages).map((stage) =>
      this.policiesOf(id, stage),
    );
    const policies = new Map([...ofApp!, ...ofClass!, ...ofMethod!]);
    for (const name of skip ?? []) policies.delete(name);
    if (choices.length > 0) this.routePolicies.useAll(`the choice of ${id}`);
    const cost = costOf(handler) ?? costOf(type);
    const usesQuota = this.usesQuota(`@RateLimit() on ${id}`, entries);
    const isHandedOver = handsOver(handler) || handsOver(type);
    const all = [...policies.values()];
    const plan = this.plan(id, all, choices, usesQuota, cost, isHandedOver);
    checkCosts(plan, this.maxCost, (name) => policies.get(name)?.fixedCost);
    const names = paramNamesOf(handler);
    if (names !== undefined) {
      // Policies that `apply` names are for all handlers: a value that some of them do not have is no mistake there.
      const isHttp = Reflect.hasMetadata(PATH, handler);
      const asked = all.filter(({ name }) => isHttp || ofClass!.has(name) || ofMethod!.has(name));
      for (const { name, params } of asked) checkParams(plan, name, params, names);
      this.named.set(plan, { names, asked });
    }
    this.checkCapacities(plan);
    const part = (): void => plan.part(ofClass!, ofMethod!);
    part();
    this.all.set(plan, part);
    return this.settings.enabled === false ? this.emptyPlan(id) : plan;
  }

  /** A cost beyond every tier of a policy would be refused each time. */
  private checkCapacities({ id, cost, policies }: RoutePlan): void {
    if (typeof cost !== 'number') return;
    for (const { name } of policies) {
      const { base, tiers } = this.limiter.policy(name)!;
      const most = Math.max(base.capacity, ...[...tiers.values()].map((one) => one.capacity));
      if (cost <= most) continue;
      const expected = `at most ${most}, which is all that policy "${name}" ever holds; raise its burst`;
      throw new InvalidArgumentError(`@RateLimitCost on ${id}`, cost, expected);
    }
  }

  private policiesOf(id: string, entries: readonly RateLimitEntry[]): Map<string, AppliedPolicy> {
    const policies = new Map<string, AppliedPolicy>();
    for (const { what } of entries) {
      if (typeof what === 'object') this.addInline(id, what, policies);
      else if (typeof what === 'string')
        policies.set(what, this.routePolicies.use(what, `@RateLimit on ${id}`));
    }
    return policies;
  }

  private plan(
    ...args: [string, AppliedPolicy[], PolicyChoice[], boolean, RoutePlan['cost'], boolean]
  ) {
    return new RoutePlan(...args, this.limiter, undefined, this.routePolicies.publicNameOf);
  }

  private emptyPlan(id: string): RoutePlan {
    return this.plan(id, [], [], false, undefined, false);
  }

  private appliedToAll(): RateLimitEntry[] {
    const { apply } = this.settings;
    if (apply === undefined) return [];
    if (apply === 'quota') return [{ what: undefined, quota: undefined }];
    return apply.map((what) => ({ what, quota: undefined }));
  }

  /** A policy that stands in a decorator belongs to its handler, and is called after it. */
  private addInline(id: string, input: RouteFields, policies: Map<string, AppliedPolicy>): void {
    let name = id;
    for (let n = 2; this.routePolicies.has(name); n++) name = `${id}.${n}`;
    policies.set(name, this.routePolicies.defineInline(name, input));
  }

  /** The entry closest to the handler decides. */
  private usesQuota(where: string, entries: readonly RateLimitEntry[]): boolean {
    const said = entries.findLast(({ quota }) => quota !== undefined)?.quota;
    const asksForIt = entries.some(({ what }) => what === undefined);
    if (asksForIt && !this.settings.hasQuota) {
      throw new InvalidArgumentError(
        where,
        undefined,
        "a policy, or the options 'quota' and 'app' of the module: without a policy it charges the app's quota",
      );
    }
    return this.settings.hasQuota && said !== false;
  }

  /**
   * Buckets are called after it, so it is the same in all processes and deployments: of handlers that
   * have one name each is known by where it is served, whichever of them is found first.
   */
  private idOf(type: Class, handler: Handler): string {
    const name = methodNameOf(type, handler);
    const plain = plainIdOf(type, name);
    this.namesakes ??= namesakesIn(this.settings.handlers());
    const namesakes = this.namesakes.get(plain);
    // A module that is loaded later may bring another one of the name.
    const isShared = namesakes !== undefined || this.ids.has(plain);
    const own = isShared ? `${plain}-${this.digestOf({ type, handler, name }, namesakes)}` : plain;
    let id = own;
    // Only what is alike in name, place, module and text is left, of which the order is all there is.
    for (let n = 2; this.ids.has(id); n++) id = `${own}-${n}`;
    this.ids.add(id);
    return id;
  }

  private digestOf(one: NamedHandler, namesakes: readonly NamedHandler[] = [one]): string {
    const place = this.placeOf(one);
    const isElsewhere = (other: NamedHandler): boolean =>
      isSameHandler(one, other) || this.placeOf(other) !== place;
    // Two gateways, or fields of two schemas, may be served at the same place.
    const text = namesakes.every(isElsewhere) ? place : `${place} ${sourceOf(one, namesakes)}`;
    return createHash('sha256').update(text).digest('hex').slice(0, DIGEST_LENGTH);
  }

  private placeOf({ type, handler, name }: NamedHandler): string {
    const paths = this.settings.pathsOf(type, handler);
    const place = routePlaceOf(type, handler, name, paths);
    return `${place.verb} ${place.name}`;
  }
}

/** A value that the requests of a route do not have would be one bucket for all, or one for each. */
function checkParams(
  { id }: RoutePlan,
  policy: string,
  params: readonly (string | number)[],
  { such, of, meantBy }: ParamNames,
): void {
  const byName = of && `by name on this route, such as ${such}: ${of} have names, not places`;
  for (const param of params) {
    const meant = typeof param === 'number' ? byName : meantBy(param);
    if (meant === undefined) continue;
    const where = policy === id ? `@RateLimit on ${id}` : `policies.${policy}, asked for by ${id}`;
    const expectation = `a { param } ${meant}`;
    const got = typeof param === 'number' ? 'a place' : `'${param}'`;
    const message = `${where}: expected ${expectation}, got ${got}`;
    throw new InvalidArgumentError(`policies.${policy}.key`, param, expectation, message);
  }
}

/** The policies of each stage, from the outermost on, that none further in replaces. */
function withoutReplaced(
  id: string,
  stages: readonly (readonly RateLimitEntry[])[],
): (readonly RateLimitEntry[])[] {
  const left = [...stages];
  for (const [place, stage] of stages.entries()) {
    const outer = stages.slice(0, place).flatMap((entries) => entries.flatMap(nameOf));
    for (const name of stage.flatMap(({ instead = [] }) => instead)) {
      if (!outer.includes(name)) {
        const known = outer.length === 0 ? 'there are none' : outer.sort().join(', ');
        throw new InvalidArgumentError(
          `@RateLimit on ${id}.instead`,
          name,
          `a policy of the class or of 'apply' that would hold here (${known}); an inline one is named by its 'name'`,
        );
      }
      for (let at = 0; at < place; at++) {
        left[at] = left[at]!.filter((entry) => !nameOf(entry).includes(name));
      }
    }
  }
  return left;
}

/** The name of a decorator's policy for others, if it has one. */
function nameOf({ what }: RateLimitEntry): string[] {
  if (typeof what === 'string') return [what];
  return typeof what === 'object' && what.name !== undefined ? [what.name] : [];
}

/** The modules of a handler, and its source. */
function sourceOf(one: NamedHandler, all: readonly NamedHandler[]): string {
  const modules = all
    .filter((other) => isSameHandler(one, other))
    .map(({ module }) => module?.name);
  return `${modules.toSorted().join()} ${Function.prototype.toString.call(one.handler)}`;
}

function isSameHandler(one: NamedHandler, other: NamedHandler): boolean {
  return one.type === other.type && one.handler === other.handler;
}

function plainIdOf(type: Class, name: string): string {
  return `${type.name}.${name}`.replace(/[^\w.-]/g, '_').slice(0, LONGEST_ID);
}

/** The handlers whose id another one would have as well, by that id. */
function namesakesIn(handlers: Iterable<NamedHandler>): Map<string, readonly NamedHandler[]> {
  const known = new Map<string, NamedHandler[]>();
  for (const found of handlers) {
    const id = plainIdOf(found.type, found.name);
    const others = known.get(id);
    if (others === undefined) known.set(id, [found]);
    else others.push(found);
  }
  for (const [id, all] of known) {
    // Several modules may have the same class.
    if (all.every((one) => isSameHandler(one, all[0]!))) known.delete(id);
  }
  return known;
}

/** A computed cost is only known with its request. */
function checkCosts(
  { id, cost, policies, usesQuota }: RoutePlan,
  maxCost: number,
  costs: (policy: string) => number | undefined,
): void {
  if (!usesQuota) return;
  const fixed: (readonly [string, unknown])[] = policies.map(({ name }) => [
    `policies.${name}.cost`,
    costs(name),
  ]);
  for (const [at, value] of [[`@RateLimitCost on ${id}`, cost] as const, ...fixed]) {
    if (typeof value !== 'number' || value <= maxCost) continue;
    throw new InvalidArgumentError(
      at,
      value,
      `at most ${maxCost}, which is the quota's maxCost: raise 'quota.maxCost', or leave the quota out of ${id}`,
    );
  }
}

const DIGEST_LENGTH = 8;
/** Leaves room for a digest and a number in the 64 characters that the limiter takes as a name. */
const LONGEST_ID = 48;
