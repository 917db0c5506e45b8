import { createRequire } from 'node:module';
import { Inject, Injectable, Optional, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import type { HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { InvalidArgumentError, MissingPackageError, ModuleMissingError } from '../common/errors.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { RateLimitMonitor } from './monitor.js';

const NAME = 'RateLimitHealthIndicator';
const PACKAGE = '@nestjs/terminus';

/** When the indicator says that something is down. */
export interface HealthOptions {
  /**
   * Whether a store that is away counts as down. By default it does not: processes decide by themselves then, and a probe
   * that fails on all of them at once would be the real outage.
   */
  readonly strict?: boolean;
}

/** The indicator of both versions; only the later one has a state between up and down. */
interface Session<Key extends string> {
  up(data: object): HealthIndicatorResult<Key>;
  down(data: object): HealthIndicatorResult<Key>;
  degraded?(data: object): HealthIndicatorResult<Key>;
}

/** For the health checks of @nestjs/terminus, 11 and 12. Nothing is asked of the store: it answers from what is known. */
@Injectable()
export class RateLimitHealthIndicator implements OnModuleInit {
  private service: HealthIndicatorService | undefined;

  constructor(
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Optional() @Inject(RateLimiter) private readonly limiter: RateLimiter | undefined,
    @Optional() @Inject(RateLimitMonitor) private readonly monitor: RateLimitMonitor | undefined,
  ) {}

  onModuleInit(): void {
    if (this.limiter === undefined) throw new ModuleMissingError(NAME);
    this.service = this.findService();
    if (this.service !== undefined) return;
    if (!isInstalled()) throw new MissingPackageError(PACKAGE, NAME);
    throw new InvalidArgumentError(
      NAME,
      undefined,
      'TerminusModule among the imports',
      `${NAME} needs TerminusModule of ${PACKAGE}: import it in the module that checks health`,
    );
  }

  /** Found by its name: terminus 12 is an ES module, which not every loader can require, and it is loaded already. */
  private findService(): HealthIndicatorService | undefined {
    for (const { providers } of this.modules.values()) {
      for (const [token, { instance }] of providers) {
        if (typeof token !== 'function' || token.name !== 'HealthIndicatorService') continue;
        return instance as HealthIndicatorService;
      }
    }
    return undefined;
  }

  check<const Key extends string = 'weir'>(
    key: Key = 'weir' as Key,
    { strict = false }: HealthOptions = {},
  ): HealthIndicatorResult<Key> {
    const session: Session<Key> = this.service!.check(key);
    const details = this.monitor?.health();
    if (details === undefined) return session.up({ monitor: 'off' });
    if (details.store !== 'away') return session.up({ ...details });
    if (strict) return session.down({ ...details });
    return session.degraded?.({ ...details }) ?? session.up({ ...details, impaired: true });
  }
}

function isInstalled(): boolean {
  try {
    createRequire(import.meta.url).resolve(PACKAGE);
    return true;
  } catch (error) {
    // Found, but nothing that could be required.
    return (error as { code?: string }).code === 'ERR_PACKAGE_PATH_NOT_EXPORTED';
  }
}
