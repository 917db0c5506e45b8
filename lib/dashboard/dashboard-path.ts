import { type OnModuleInit } from '@nestjs/common';
import { type ApplicationConfig } from '@nestjs/core';
import { Monitor, type RateLimitMonitor } from '../observability/monitor.js';
import { type Overload } from '../overload/overload.js';

/** How an application puts its paths together. */
type PathConfig = Pick<ApplicationConfig, 'getGlobalPrefix' | 'getGlobalPrefixOptions'>;

/**
 * Tells the others where the page is: the line at the start names it, and it does not stand in line, as it is needed
 * most when there is no time. Before the application starts, when its prefix is known.
 */
export class DashboardPath implements OnModuleInit {
  constructor(
    private readonly path: string,
    private readonly monitor: RateLimitMonitor | undefined,
    private readonly overload: Pick<Overload, 'exemptOwn'> | undefined,
    private readonly config: PathConfig | undefined,
  ) {}

  onModuleInit(): void {
    const path = pathWithPrefix(this.path, this.config);
    this.overload?.exemptOwn(path);
    if (this.monitor instanceof Monitor) this.monitor.dashboard = `${path}/`;
  }
}

/** With the application's prefix, unless that leaves it out. */
function pathWithPrefix(path: string, config: PathConfig | undefined): string {
  const prefix = (config?.getGlobalPrefix() ?? '').replace(/^\/*|\/*$/g, '');
  const { exclude = [] } = config?.getGlobalPrefixOptions() ?? {};
  const isApart = exclude.some(({ pathRegex }) => pathRegex.test(`/${path}`));
  return prefix === '' || isApart ? `/${path}` : `/${prefix}/${path}`;
}
