import { InvalidArgumentError } from '../common/errors.js';
import {
  type DegradeLevel,
  type RecoveryChange,
  type TripCause,
  type WarmUpReport,
} from './core/contract.js';
import { type DegradationCore, type DegradationStats } from './core/degradation-core.js';
import { type Recovery } from './core/recovery.js';
import { type WarmUpEntry } from './degrade-options.js';
import { type DegradeRoutes } from './degrade-routes.js';
import { type RouteWarming, type WarmedResource } from './route-warming.js';

/** For operators: how resources are, and what is to be done with them. */
export class Degradation {
  /** @internal */
  constructor(
    private readonly core: () => DegradationCore,
    private readonly routes: Pick<DegradeRoutes, 'get'>,
    private readonly warming: () => Pick<RouteWarming, 'warm' | 'names'>,
    private readonly opened: () => DegradationStats | undefined,
  ) {}

  /** @internal What is counted, if there is any `@Degrade`: `stats` would open what nobody needs. */
  get openedStats(): DegradationStats | undefined {
    return this.opened();
  }

  /** All requests get a fallback, of that level if one is given, until `resume`. */
  force(resource: string, level?: DegradeLevel): void {
    this.of(resource).force(level);
  }

  /** Everything is as if there were no `@Degrade`, until `resume`. */
  disable(resource: string): void {
    this.of(resource).disable();
  }

  /** Changes are counted and logged, and no request is held, until `resume`. */
  observe(resource: string): void {
    this.of(resource).observe();
  }

  /** Back to the resource's own health. After `force` the way leads through probes. */
  resume(resource: string): void {
    this.of(resource).resume();
  }

  /** Degrades the resource for that cause; it comes back by probes and the ramp. */
  trip(resource: string, cause: TripCause = 'operator'): void {
    this.of(resource).trip(cause);
  }

  /** Calls back for every change of a resource's state; the result stops that. */
  on(event: 'state', listener: (change: RecoveryChange) => void): () => void {
    return this.core().recoveries.on(event, listener);
  }

  stats(): DegradationStats {
    return this.core().stats();
  }

  /**
   * Fills the caches of a route, `Class.method`, before they are needed. The questions are those of
   * callers without a name, or of the principal they give.
   */
  warmUp<Question extends WarmUpEntry>(
    route: string,
    questions: Iterable<Question>,
    load: (question: Question) => unknown,
  ): Promise<WarmUpReport> {
    const found = this.routes.get(route);
    const { keys, levels } = found;
    const byKey = new Map(Array.from(questions, (question) => [keys.keyFor(question), question]));
    return this.core().caches.warmUp(levels, byKey.keys(), async (key) => {
      const question = byKey.get(key)!;
      const answer = await load(question);
      found.warmed(question);
      return answer;
    });
  }

  /**
   * Fills the caches with what `warm` of `@Degrade` lists: of all resources, or of one. It is done when
   * Redis has the answers, too; a second call for the same resource waits for the first.
   */
  warm(resource?: string): Promise<WarmedResource[]> {
    return this.warming().warm(resource);
  }

  /** The resources that `warm` takes. */
  warmable(): string[] {
    return this.warming().names();
  }

  /** An unknown name is one that an operator has misspelt. */
  private of(resource: string): Recovery {
    const { recoveries } = this.core();
    const names = recoveries.names();
    if (names.includes(resource)) return recoveries.of(resource);
    throw new InvalidArgumentError('resource', resource, `one of ${names.sort().join(', ')}`);
  }
}
