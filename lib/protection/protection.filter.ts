import {
  Catch,
  Inject,
  Optional,
  type ArgumentsHost,
  type ExceptionFilter,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleMissingError } from '../common/errors.js';
import { DeadlineExceededError, ProtectionRejectedError } from './errors.js';
import { Transports } from '../requests/transport.js';
import { TurnedAway } from './turned-away.js';
import { unavailableBodyOf, type ProtectionFailure } from './unavailable.js';

/**
 * Answers requests that protection has turned away, and those whose resource was too slow, in the
 * words of their transport. The module binds it behind all filters of controllers and handlers.
 */
@Catch(ProtectionRejectedError, DeadlineExceededError)
export class ProtectionFilter implements ExceptionFilter<ProtectionFailure>, OnModuleInit {
  constructor(
    @Optional() @Inject(Transports) private readonly transports: Transports | undefined,
    @Optional() @Inject(TurnedAway) private readonly turnedAway: TurnedAway | undefined,
  ) {}

  onModuleInit(): void {
    if (this.transports === undefined) throw new ModuleMissingError('ProtectionFilter');
  }

  catch(error: ProtectionFailure, host: ArgumentsHost): unknown {
    const transport = this.transports?.find(host);
    // A global filter meets contexts that nobody here has heard of.
    if (transport === undefined) throw error;
    this.turnedAway?.add(error);
    return transport.turnAway(unavailableBodyOf(error), host, error);
  }
}
