import { type ServerResponse } from 'node:http';
import {
  Inject,
  Module,
  type DynamicModule,
  type NestModule,
  type OnModuleInit,
} from '@nestjs/common';
import { ApplicationConfig, type HttpAdapterHost } from '@nestjs/core';
import { ModuleMissingError } from '../common/errors.js';
import { RateLimitConfig } from '../config/rate-limit-config.js';
import { Degradation } from '../degradation/degradation.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { RoutePolicies } from '../limits/route-policies.js';
import { Monitor, RateLimitMonitor } from '../observability/monitor.js';
import { Overload } from '../overload/overload.js';
import { Protection } from '../protection/protection.js';
import { OPTIONAL_ADAPTER, provide } from '../requests/module-tokens.js';
import { type FastifyHooks } from '../transports/http/line-server.js';
import { protect } from './answers.js';
import { Dashboard } from './dashboard.js';
import { DashboardLog } from './dashboard.log.js';
import { changeController, viewController } from './dashboard.controller.js';
import { DashboardRoutes, dashboardRoutes } from './dashboard-routes.js';
import { sharedTokensOf, signInController } from './shared-token.js';
import { checkDashboard, type DashboardInput } from './dashboard.options.js';

/** How an application puts its paths together. */
type PrefixConfig = Pick<ApplicationConfig, 'getGlobalPrefix' | 'getGlobalPrefixOptions'>;

/**
 * Tells the others where the page is: the line at the start names it, and it does not stand in line, as it is needed
 * most when there is no time. Before the application starts, when its prefix is known.
 */
class DashboardPath implements OnModuleInit {
  constructor(
    private readonly path: string,
    private readonly monitor: RateLimitMonitor | undefined,
    private readonly overload: Pick<Overload, 'exemptOwn'> | undefined,
    private readonly config: PrefixConfig | undefined,
  ) {}

  onModuleInit(): void {
    const path = pathWithPrefix(this.path, this.config);
    this.overload?.exemptOwn(path);
    if (this.monitor instanceof Monitor) this.monitor.dashboard = `${path}/`;
  }
}

type Next = (error?: unknown) => void;

/** Whether a request is for a path or what is below it. */
function isBelow(path: string, url: string): boolean {
  const after = url.charCodeAt(path.length);
  // The end, a slash or a question mark.
  return url.startsWith(path) && (Number.isNaN(after) || after === 47 || after === 63);
}

/** Gives all that is answered at the path of the page and below it the headers of the page. */
class DashboardHeaders {
  constructor(
    private readonly path: string,
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly config: PrefixConfig | undefined,
  ) {}

  /** Before any route is registered, when the prefix is known. */
  mount(): void {
    // A microservice that stands alone has null there, whatever the types say.
    const adapter = this.adapterHost?.httpAdapter ?? undefined;
    if (adapter === undefined) return;
    const path = pathWithPrefix(this.path, this.config);
    if (adapter.getType() === 'fastify') {
      // Its middleware is matched by a pattern, for every request of the application; this is one comparison.
      adapter.getInstance<FastifyHooks>().addHook('onRequest', (request, reply, done) => {
        if (isBelow(path, request.raw.url ?? '')) protect(reply.raw);
        done();
      });
      return;
    }
    adapter.use(path, (_request: unknown, response: ServerResponse, next: Next) => {
      protect(response);
      next();
    });
    // The body parsers of Express come first, and after an error it goes on with what takes one.
    const afterError = (error: unknown, _: unknown, response: ServerResponse, next: Next): void => {
      protect(response);
      next(error);
    };
    adapter.use(path, afterError);
  }
}

/** With the application's prefix, unless that leaves it out. */
function pathWithPrefix(path: string, config: PrefixConfig | undefined): string {
  const prefix = (config?.getGlobalPrefix() ?? '').replace(/^\/*|\/*$/g, '');
  const { exclude = [] } = config?.getGlobalPrefixOptions() ?? {};
  const isApart = exclude.some(({ pathRegex }) => pathRegex.test(`/${path}`));
  return prefix === '' || isApart ? `/${path}` : `/${prefix}/${path}`;
}

/** The page that shows what the limits do, and where they can be changed. */
@Module({})
export class RateLimitDashboardModule implements NestModule {
  /** @internal */
  constructor(
    @Inject(DashboardRoutes) private readonly routes: DashboardRoutes,
    @Inject(DashboardHeaders) private readonly headers: DashboardHeaders,
  ) {}

  /** Before any route is registered: Fastify would refuse a second one without a remedy, Express take it silently. */
  configure(): void {
    this.routes.mustBeFree();
    this.headers.mount();
  }

  static forRoot(input: DashboardInput): DynamicModule {
    const options = checkDashboard(input);
    const optional = (token: unknown) => ({ token: token as never, optional: true });
    const dashboard = provide(
      Dashboard,
      [
        ...[RateLimiter, RateLimitMonitor, RateLimitConfig, Protection, Degradation, Overload],
        RoutePolicies,
      ].map(optional),
      (
        limiter: RateLimiter | undefined,
        monitor: RateLimitMonitor | undefined,
        config: RateLimitConfig,
        protection: Protection,
        operations: Degradation,
        line: Overload,
        routePolicies: RoutePolicies | undefined,
      ) => {
        if (limiter === undefined) throw new ModuleMissingError('RateLimitDashboardModule');
        // Switched off: the page says so.
        if (monitor === undefined) return undefined;
        return new Dashboard({
          ...{ limiter, monitor, config, protection, options },
          ipv6Prefix: routePolicies?.ipv6Prefix,
          degradation: () => operations.openedStats,
          overload: () => (line.isOn ? line.stats() : undefined),
          clock: monitor.clock,
          log: new DashboardLog(monitor.clock),
        });
      },
    );
    const path = provide(
      DashboardPath,
      [RateLimitMonitor, Overload, ApplicationConfig].map(optional),
      (monitor?: RateLimitMonitor, line?: Overload, config?: ApplicationConfig) =>
        new DashboardPath(options.path, monitor, line, config),
    );
    const headers = provide(
      DashboardHeaders,
      [OPTIONAL_ADAPTER, optional(ApplicationConfig)],
      (adapterHost?: HttpAdapterHost, config?: ApplicationConfig) =>
        new DashboardHeaders(options.path, adapterHost, config),
    );
    const controllers = [viewController(options)];
    if (options.write !== undefined) controllers.push(changeController(options));
    const tokens = sharedTokensOf(options);
    if (tokens.length > 0) controllers.push(signInController(options.path, tokens));
    return {
      module: RateLimitDashboardModule,
      imports: options.imports,
      controllers,
      providers: [dashboard, path, headers, dashboardRoutes(controllers)],
    };
  }
}
