import { type Clock } from '../common/clock.js';
import { InvalidArgumentError } from '../common/errors.js';
import { type RouteTable } from '../limits/route-table.js';
import { ByHandler, methodNameOf } from '../requests/by-handler.js';
import { type Class, type Handler } from '../requests/nest-metadata.js';
import { routePlaceOf, type ServedPath } from '../limits/route-place.js';
import { type HealthProbe } from './core/contract.js';
import { type FallbackChain } from './core/fallback-chain.js';
import { type Recoveries } from './core/recoveries.js';
import { AnswerKeys, type AnswerKeySettings } from './answer-keys.js';
import { levelsOf, type Controllers } from './route-levels.js';
import { checkRoute, checkService, whyNot } from './degrade-check.js';
import { degradeOf } from './degrade-options.js';
import { DegradeRoute } from './degrade-route.js';
import {
  CachedRequests,
  LongFingerprints,
  RouteAnswers,
  type RouteAnswersDeps,
} from './route-answers.js';
import { DeadlineQueues, type DefaultDeadlines } from './route-deadlines.js';
import { addressesOf, patternOf, type PathConfig } from './warm-addresses.js';

export interface DegradeRoutesDeps extends Omit<RouteAnswersDeps, 'kept'> {
  readonly table: Pick<RouteTable, 'planOf'>;
  readonly recoveries: Pick<Recoveries, 'of'>;
  readonly fallbacks: FallbackChain;
  readonly probes: Readonly<Record<string, HealthProbe>>;
  readonly controllers: Controllers;
  readonly user: AnswerKeySettings['user'];
  readonly credentials: AnswerKeySettings['credentials'];
  /** Called for a route whose answer was not kept because of credentials without a name. */
  readonly unnamed: (route: string) => void;
  /** The paths of HTTP under which a handler is served. */
  readonly pathsOf: (type: Class, handler: Handler) => readonly ServedPath[];
  /** The paths of all handlers of GET but of these. */
  readonly pathsBeside: (isLeftOut: (type: Class, handler: Handler) => boolean) => ServedPath[];
  /** Undefined where nothing is served over HTTP. */
  readonly pathConfig?: PathConfig | undefined;
  /** The decorator stands on the class and on the method. */
  readonly isBoundTwice: (type: object, handler: object) => boolean;
  readonly deadlines: DefaultDeadlines;
  readonly clock: Clock;
  /** Called for errors of handlers that no caller sees. */
  readonly hidden: (route: string, error: unknown) => void;
}

/** The service whose answers a store keeps. */
export interface AnswerOwner {
  /** Tells the answers of services apart that share a store. */
  readonly service: string | undefined;
  /** Others may have their answers in the same store. */
  readonly isStoreShared: boolean;
  /** Nobody is to be helped: handlers are as if they had no `@Degrade`. */
  readonly isOff?: boolean;
}

/** The route of every handler with `@Degrade`, made when it is first needed, as plans of limits are. */
export class DegradeRoutes {
  private readonly routes = new ByHandler((type, handler) => this.make(type, handler));
  private readonly byId = new Map<string, DegradeRoute>();
  private long: LongFingerprints | undefined;
  private cachedRequests: CachedRequests | undefined;
  private queues: DeadlineQueues | undefined;
  private usual: DefaultDeadlines | undefined;
  /** Of GET, whose answers are also in a cache that processes share. */
  private readonly shared: ServedPath[] = [];
  private patterns: { readonly shared: RegExp; readonly others: RegExp } | undefined;

  /** An application without `@Degrade` needs none of the parts: they are made for the first route. */
  constructor(
    private readonly deps: () => DegradeRoutesDeps,
    private readonly owner: AnswerOwner,
  ) {}

  /** For the line, which asks before it knows the route. */
  get kept(): CachedRequests {
    return (this.cachedRequests ??= new CachedRequests());
  }

  /**
   * Whether another process may have kept the answer to a GET, as far as its address says. For the line as well: an
   * address that a handler without `@Degrade` may have is none, since that one would run.
   */
  mayBeElsewhere(address: string): boolean {
    if (this.shared.length === 0) return false;
    this.patterns ??= this.patternsOf(this.deps());
    return this.patterns.shared.test(address) && !this.patterns.others.test(address);
  }

  /** Undefined for a handler that has no other answer than its own. */
  of(type: Class, handler: Handler): DegradeRoute | undefined {
    return this.routes.of(type, handler);
  }

  /** By its id, `Class.method`. */
  get(id: string): DegradeRoute {
    const route = this.byId.get(id);
    if (route !== undefined) return route;
    const known = [...this.byId.keys()].sort().join(', ');
    throw new InvalidArgumentError('route', id, `one of the routes with @Degrade: ${known}`);
  }

  all(): Iterable<DegradeRoute> {
    return this.byId.values();
  }

  /**
   * Checks that every route could live with other deadlines; what comes back puts them into effect, for
   * requests that come then.
   */
  prepare(usual: DefaultDeadlines): () => void {
    const routes = [...this.byId.values()];
    this.queues?.keep(routes);
    const next = routes.map((route) => this.queues!.of(nameOf(route.id), route.options, usual));
    return () => {
      this.usual = usual;
      for (const [i, route] of routes.entries()) Object.assign(route, next[i]);
    };
  }

  close(): void {
    this.queues?.close();
  }

  private patternsOf({ pathsBeside, pathConfig }: DegradeRoutesDeps) {
    const others = pathsBeside((type, handler) => this.of(type, handler) !== undefined);
    return { shared: patternOf(this.shared, pathConfig), others: patternOf(others, pathConfig) };
  }

  private make(type: Class, handler: Handler): DegradeRoute | undefined {
    const ofClass = degradeOf(type);
    const own = degradeOf(handler);
    if (own === undefined && ofClass === undefined) return undefined;
    const method = methodNameOf(type, handler);
    const at = nameOf(`${type.name}.${method}`);
    const why = whyNot(type, handler, method);
    // Options of a class are meant for those of its handlers that they fit.
    if (why !== undefined && own === undefined) return undefined;
    if (why !== undefined) {
      throw new InvalidArgumentError(at, undefined, why, `${at}: expected ${why}`);
    }
    const options = { ...ofClass, ...own };
    checkRoute(at, type, handler, options, own ?? {});
    const { service, isStoreShared, isOff } = this.owner;
    if (isStoreShared) checkService(at, handler, options, service);
    if (isOff) return undefined;
    // From here on connections are open.
    const deps = this.deps();
    const { user, credentials } = deps;
    const { id } = deps.table.planOf(type, handler);
    const resource = options.resource ?? id;
    const recovery = deps.recoveries.of(resource, { probe: deps.probes[resource] });
    const levels = levelsOf(recovery.resource, options, deps.controllers);
    const paths = deps.pathsOf(type, handler);
    const place = routePlaceOf(type, handler, method, paths);
    const unnamed = (): void => deps.unnamed(id);
    const keys = new AnswerKeys({ service, place, options, user, credentials, unnamed });
    this.queues ??= new DeadlineQueues(deps.clock);
    this.long ??= new LongFingerprints();
    const route = new DegradeRoute({
      ...{ id, options, recovery, levels, keys },
      fallbacks: deps.fallbacks,
      clock: deps.clock,
      controller: () => deps.controllers.apart(type),
      hidden: deps.hidden,
      answers: new RouteAnswers(id, keys, levels.usual, { ...deps, kept: this.kept }, this.long),
      warmed: (question) => {
        if (place.verb !== 'GET') return;
        this.kept.add(() => addressesOf(paths, question, deps.pathConfig));
      },
      deadlines: this.queues.of(at, options, this.usual ?? deps.deadlines),
      isBoundTwice: deps.isBoundTwice(type, handler),
    });
    this.byId.set(id, route);
    if (isStoreShared && place.verb === 'GET' && levels.usual.level1 !== false) {
      this.shared.push(...paths);
    }
    return route;
  }
}

const nameOf = (id: string): string => `@Degrade on ${id}`;
