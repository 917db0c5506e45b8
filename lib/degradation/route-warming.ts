import { InvalidArgumentError } from '../common/errors.js';
import { type AnswerStore } from './core/contract.js';
import { type DegradeRoute } from './degrade-route.js';
import { type WarmEntry } from './degrade-options.js';

/** The result of warming one resource: entries whose answers are kept now, and others. */
export interface WarmedResource {
  readonly resource: string;
  readonly warmed: number;
  /** Not loaded, without an answer, or not kept by one of the caches. */
  readonly failed: number;
}

export interface RouteWarmingDeps {
  readonly routes: () => Iterable<DegradeRoute>;
  readonly caches: () => Pick<AnswerStore, 'warmUp'>;
  /** Called for a resource with entries that failed, with the first error, if there was one. */
  readonly failed: (warmed: WarmedResource, error: unknown) => void;
}

/** Fills the caches of routes before they are needed, by the entries that their `warm` lists. */
export class RouteWarming {
  private readonly underWay = new Map<string, Promise<WarmedResource>>();

  constructor(private readonly deps: RouteWarmingDeps) {}

  /** One resource after the other; one that is being warmed already is waited for. */
  async warm(resource?: string): Promise<WarmedResource[]> {
    const routes = this.byResource();
    if (resource !== undefined && !routes.has(resource)) {
      const known = [...routes.keys()].sort().join(', ') || '(none)';
      const what = `one of the resources with 'warm' in @Degrade: ${known}`;
      throw new InvalidArgumentError('resource', resource, what);
    }
    const warmed: WarmedResource[] = [];
    for (const [name, ofName] of routes) {
      if (resource === undefined || name === resource) warmed.push(await this.join(name, ofName));
    }
    return warmed;
  }

  /** The resources that can be warmed. */
  names(): string[] {
    return [...this.byResource().keys()];
  }

  private byResource(): Map<string, DegradeRoute[]> {
    const found = new Map<string, DegradeRoute[]>();
    for (const route of this.deps.routes()) {
      if (route.options.warm === undefined) continue;
      const { resource } = route.recovery;
      found.set(resource, [...(found.get(resource) ?? []), route]);
    }
    return found;
  }

  private join(resource: string, routes: readonly DegradeRoute[]): Promise<WarmedResource> {
    let warming = this.underWay.get(resource);
    if (warming === undefined) {
      warming = this.begin(resource, routes).finally(() => this.underWay.delete(resource));
      this.underWay.set(resource, warming);
    }
    return warming;
  }

  private async begin(resource: string, routes: readonly DegradeRoute[]): Promise<WarmedResource> {
    let [warmed, failed] = [0, 0];
    const errors: unknown[] = [];
    const note = (error: unknown): void => {
      if (errors.length === 0) errors.push(error);
    };
    for (const route of routes) {
      const loads = new Map<string, WarmEntry>();
      const wrong = (error: unknown): void => {
        failed++;
        note(error);
      };
      const load = async (key: string): Promise<unknown> => {
        const entry = loads.get(key)!;
        loads.delete(key);
        const answer = await entry.load();
        route.warmed(entry);
        return answer;
      };
      const keys = keysOf(route, loads, wrong);
      const report = await this.deps.caches().warmUp(route.levels, keys, load, note);
      warmed += report.loaded;
      failed += report.skipped + report.failed;
    }
    const all = { resource, warmed, failed };
    if (failed > 0) this.deps.failed(all, errors[0]);
    return all;
  }
}

/** An impossible entry is reported, and the next one follows. */
async function* keysOf(
  route: DegradeRoute,
  loads: Map<string, WarmEntry>,
  wrong: (error: unknown) => void,
): AsyncGenerator<string> {
  for await (const entry of await route.warmEntries()) {
    try {
      if (typeof entry?.load !== 'function') {
        throw new InvalidArgumentError('warm', entry, "entries with a function 'load'");
      }
      const key = route.keys.keyFor(entry);
      loads.set(key, entry);
      yield key;
    } catch (error) {
      wrong(error);
    }
  }
}
