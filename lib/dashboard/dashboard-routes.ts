import { RequestMethod, VERSION_NEUTRAL, type Type } from '@nestjs/common';
import { ApplicationConfig, MetadataScanner, ModulesContainer } from '@nestjs/core';
import { RateLimitError } from '../common/errors.js';
import { HandlerExplorer, type RouteInfo } from '../requests/handlers.js';
import { HOST, type Class } from '../requests/nest-metadata.js';
import { provide } from '../requests/module-tokens.js';

/** Of two handlers of one path the one that Nest meets first would answer, for both. */
export class DashboardPathTakenError extends RateLimitError {
  readonly code = 'DASHBOARD_PATH_TAKEN';

  constructor(
    readonly path: string,
    readonly handler: string,
  ) {
    super(
      `RateLimitDashboardModule: ${path} is a route of ${handler} already. ` +
        'Give the dashboard another `path`, or move that route',
    );
  }
}

/** Finds the route of the application that has a path of the page. */
export class DashboardRoutes {
  private readonly explorer: HandlerExplorer;

  constructor(
    private readonly own: readonly Type[],
    modules: ModulesContainer,
    private readonly config: ApplicationConfig | undefined,
  ) {
    this.explorer = new HandlerExplorer(modules, new MetadataScanner());
  }

  /** Throws if there is one. */
  mustBeFree(): void {
    const [ours, others]: [Served[], Served[]] = [[], []];
    for (const { type, handler, name } of this.explorer.handlers()) {
      const served = { type, name, infos: this.explorer.pathsOf(type, handler) };
      if (served.infos.length > 0) (this.isOwn(type) ? ours : others).push(served);
    }
    const taken = new Map(ours.flatMap(({ infos }) => infos.map((info) => [info.path, info])));
    for (const { type, name, infos } of others) {
      if (Reflect.getMetadata(HOST, type) !== undefined) continue;
      const found = infos.find((info) => this.isTaken(info, taken.get(info.path)));
      if (found !== undefined) {
        throw new DashboardPathTakenError(found.path, `${type.name}.${name}`);
      }
    }
  }

  private isOwn(type: Class): boolean {
    return this.own.includes(type as unknown as Type);
  }

  /** Routes of a version have another path than the page, which has none, or another header. */
  private isTaken({ method, version }: RouteInfo, own: RouteInfo | undefined): boolean {
    const defaultVersion = this.config?.getVersioning()?.defaultVersion;
    const isNeutral = (version ?? defaultVersion ?? VERSION_NEUTRAL) === VERSION_NEUTRAL;
    const isVersioned = this.config?.getVersioning() !== undefined && !isNeutral;
    if (own === undefined || isVersioned) return false;
    return method === own.method || method === RequestMethod.ALL;
  }
}

interface Served {
  readonly type: Class;
  readonly name: string;
  readonly infos: readonly RouteInfo[];
}

export const dashboardRoutes = (own: readonly Type[]) =>
  provide(
    DashboardRoutes,
    [ModulesContainer, { token: ApplicationConfig, optional: true }],
    (modules: ModulesContainer, config?: ApplicationConfig) =>
      new DashboardRoutes(own, modules, config),
  );
