import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { DeadlineExceededError, ProtectionRejectedError } from '../protection/index.js';
import { Transports } from './request-reader.js';
import { TurnedAway } from './turned-away.js';
import { unavailableBodyOf, type ProtectionFailure } from './unavailable.js';

/**
 * Answers requests that protection has turned away, and those whose resource was too slow, in the
 * words of their transport. The module binds it behind all filters of controllers and handlers.
 */
@Catch(ProtectionRejectedError, DeadlineExceededError)
export class ProtectionFilter implements ExceptionFilter<ProtectionFailure> {
  constructor(
    @Inject(Transports) private readonly transports: Transports,
    @Inject(TurnedAway) private readonly turnedAway: TurnedAway,
  ) {}

  catch(error: ProtectionFailure, host: ArgumentsHost): unknown {
    const transport = this.transports.find(host);
    // A global filter meets contexts that nobody here has heard of.
    if (transport === undefined) throw error;
    this.turnedAway.add(error);
    return transport.turnAway(unavailableBodyOf(error), host, error);
  }
}
