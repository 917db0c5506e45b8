import { InvalidArgumentError } from '../common/errors.js';
import { isStrayPromise } from '../common/promises.js';
import { plainObject } from '../common/validate.js';
import { EXEMPT, type TierRequest, type TierResolver } from '../requests/tier.js';
import { type OverloadSettings } from './settings.js';

/** The name of the only tier, where the module has no resolver. */
export const ALL = 'all';
/** Stands for the tier of a request that does not go through the line. */
export const PASSES = -1;

/** Why a tier could not be told. */
export type TierFault = 'throws' | 'promise' | 'type' | 'name';
/** The function of the application that is at fault. */
export type TierOption = 'tier' | 'isExempt';

type TierSettings = Pick<OverloadSettings, 'tiers' | 'exempt' | 'exemptBelow'>;

/** The tier of each request, by its place in the order of tiers: 0 is the highest. */
export class Tiers {
  private tiers: ReadonlyMap<string, number> = new Map();
  private exempt: ReadonlySet<string> = new Set();
  private exemptBelow: readonly string[] = [];
  /** Pages of the library, which are needed most when there is no time. */
  private readonly own: string[] = [];
  private lowest = 0;
  faults = 0;

  constructor(
    figures: TierSettings,
    private readonly resolver: TierResolver | undefined,
    private readonly isExempt: ((request: TierRequest) => boolean) | undefined,
    private readonly onFault: (fault: TierFault, value: unknown, of: TierOption) => void,
  ) {
    this.change(figures);
  }

  /** Highest first. */
  names(figures: TierSettings): readonly string[] {
    return this.resolver === undefined ? [ALL] : figures.tiers;
  }

  change(figures: TierSettings): void {
    const names = this.names(figures);
    this.tiers = new Map(names.map((name, tier) => [name, tier]));
    this.lowest = names.length - 1;
    this.exempt = figures.exempt;
    this.exemptBelow = figures.exemptBelow;
  }

  /** The page at that path passes, and all below it, by any method. */
  addOwn(path: string): void {
    this.own.push(path);
  }

  /** True if this says all that there is to be asked: no request has to be put together. */
  get isPlain(): boolean {
    return this.resolver === undefined && this.isExempt === undefined;
  }

  /** Whether it is one of the paths that pass. */
  isExemptPath(method: string, path: string): boolean {
    if (this.isOwn(path)) return true;
    if (method !== 'GET' && method !== 'HEAD') return false;
    if (this.exempt.has(path)) return true;
    for (const beginning of this.exemptBelow) if (path.startsWith(beginning)) return true;
    return false;
  }

  private isOwn(path: string): boolean {
    for (const own of this.own) {
      if (path.startsWith(own) && (path.length === own.length || path[own.length] === '/')) {
        return true;
      }
    }
    return false;
  }

  /** PASSES, or its tier by number. */
  tierOf(request: TierRequest): number {
    const { transport, method, path } = request;
    if (transport === 'http' && this.isExemptPath(method, path)) return PASSES;
    if (this.isExempt !== undefined && this.passes(request)) return PASSES;
    const name = this.nameOf(request);
    if (name === undefined) return this.lowest;
    if (name === EXEMPT) return PASSES;
    const tier = this.tiers.get(name);
    if (tier === undefined) this.fault('name', name);
    return tier ?? this.lowest;
  }

  /** The tier for policies, which have tiers of their own: whether there is one of that name, they know. */
  nameForPolicies(request: TierRequest): string | undefined {
    const name = this.nameOf(request);
    return name === EXEMPT ? undefined : name;
  }

  /** The name that the resolver gives, if it is a name. */
  private nameOf(request: TierRequest): string | undefined {
    if (this.resolver === undefined) return undefined;
    let name: unknown;
    try {
      name = this.resolver(request);
    } catch (error) {
      return this.fault('throws', error);
    }
    if (name === undefined) return undefined;
    if (typeof name === 'string') return name;
    return this.fault(isStrayPromise(name) ? 'promise' : 'type', name);
  }

  private passes(request: TierRequest): boolean {
    try {
      const passes: unknown = this.isExempt!(request);
      if (isStrayPromise(passes)) this.fault('promise', passes, 'isExempt');
      return passes === true;
    } catch (error) {
      this.fault('throws', error, 'isExempt');
      return false;
    }
  }

  private fault(fault: TierFault, value: unknown, of: TierOption = 'tier'): undefined {
    this.faults++;
    this.onFault(fault, value, of);
    return undefined;
  }
}

const ROUTE = /^(?:([A-Z]+) )?(\/\S*|\S+)$/;

/**
 * A resolver by route: `{ 'POST /orders': 'S', '/recommendations/*': 'C' }`. A verb goes before none, an exact
 * path before a `*`, a longer path before a shorter one. Compiled once.
 */
export function tierByPath(
  routes: Readonly<Record<string, string>>,
  otherwise?: string,
): TierResolver {
  plainObject('tierByPath', routes, "an object of tiers by route, { 'POST /orders': 'S' }");
  const exact = new Map<string, string>();
  const prefixes = new Map<string, string>();
  const lengths = new Set<number>();
  for (const [route, tier] of Object.entries(routes)) {
    const [, verb = '', path = ''] = ROUTE.exec(route) ?? [];
    const star = path.indexOf('*');
    if (path === '' || (star >= 0 && star < path.length - 1)) {
      const expectation = "a route like 'POST /orders' or '/recommendations/*'";
      throw new InvalidArgumentError('tierByPath', route, expectation);
    }
    if (typeof tier !== 'string' || tier === '') {
      throw new InvalidArgumentError(`tierByPath.${route}`, tier, 'the name of a tier');
    }
    if (star < 0) exact.set(`${verb} ${path}`, tier);
    else {
      prefixes.set(`${verb} ${path.slice(0, -1)}`, tier);
      lengths.add(path.length - 1);
    }
  }
  const longestFirst = [...lengths].sort((a, b) => b - a);
  return ({ method, path }) => {
    const found = exact.get(`${method} ${path}`) ?? exact.get(` ${path}`);
    if (found !== undefined) return found;
    for (const length of longestFirst) {
      if (length > path.length) continue;
      const prefix = path.slice(0, length);
      const tier = prefixes.get(`${method} ${prefix}`) ?? prefixes.get(` ${prefix}`);
      if (tier !== undefined) return tier;
    }
    return otherwise;
  };
}
