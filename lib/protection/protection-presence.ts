import { Catch, Inject, Optional, type ExceptionFilter, type OnModuleInit } from '@nestjs/common';
import { ModuleMissingError } from '../common/errors.js';
import { Protection } from './protection.js';

/** Nobody throws it: the filter is there for its hook. */
class Never extends Error {}

/**
 * Stops the start of an application that has `@Protect` but not the module. Nest makes filters for
 * every module whose classes name them, also for those of providers, and runs their hooks.
 */
@Catch(Never)
export class ProtectionPresence implements ExceptionFilter<Never>, OnModuleInit {
  constructor(
    @Optional() @Inject(Protection) private readonly protection: Protection | undefined,
  ) {}

  onModuleInit(): void {
    if (this.protection === undefined) throw new ModuleMissingError('@Protect');
  }

  catch(error: Never): never {
    throw error;
  }
}
