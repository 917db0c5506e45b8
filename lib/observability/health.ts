import { Inject, Injectable, Optional, type OnModuleInit } from '@nestjs/common';
import { ModuleRef } from '@nestjs/core';
import type * as Terminus from '@nestjs/terminus';
import type { HealthIndicatorResult, HealthIndicatorService } from '@nestjs/terminus';
import { InvalidArgumentError, MissingPackageError, ModuleMissingError } from '../common/errors.js';
import { RateLimiter } from '../limiter/rate-limiter.js';
import { RateLimitMonitor } from './monitor.js';

const NAME = 'RateLimitHealthIndicator';

export interface HealthOptions {
  /**
   * Whether a store that is away counts as down. By default it does not: processes decide by themselves then, and a probe
   * that fails on all of them at once would be the real outage.
   */
  readonly strict?: boolean;
}

/** What both versions have, and what only the later one has: a state between up and down. */
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
    @Inject(ModuleRef) private readonly modules: ModuleRef,
    @Optional() @Inject(RateLimiter) private readonly limiter: RateLimiter | undefined,
    @Optional() @Inject(RateLimitMonitor) private readonly monitor: RateLimitMonitor | undefined,
  ) {}

  async onModuleInit(): Promise<void> {
    if (this.limiter === undefined) throw new ModuleMissingError(NAME);
    const { HealthIndicatorService: token } = await loadTerminus();
    try {
      this.service = this.modules.get(token, { strict: false });
    } catch {
      throw new InvalidArgumentError(
        NAME,
        undefined,
        'TerminusModule among the imports',
        `${NAME} needs TerminusModule of @nestjs/terminus: import it in the module that checks health`,
      );
    }
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

/** Imported, as its version 12 is an ES module, which not every loader can require. */
async function loadTerminus(): Promise<typeof Terminus> {
  try {
    return await import('@nestjs/terminus');
  } catch (cause) {
    throw new MissingPackageError('@nestjs/terminus', NAME, { cause });
  }
}
