import {
  Catch,
  Inject,
  Logger,
  Optional,
  type ArgumentsHost,
  type ExceptionFilter,
  type OnModuleInit,
} from '@nestjs/common';
import { type Clock } from '../common/clock.js';
import { ModuleMissingError } from '../common/errors.js';
import { Tally } from '../common/tally.js';
import { type UnavailableBody } from '../requests/rejections.js';
import { Transports } from '../requests/transport.js';
import { DeadlineExceededError, ProtectionRejectedError } from './errors.js';

/** The error of a handler that protection did not let through, or whose resource was too slow. */
export type ProtectionFailure = ProtectionRejectedError | DeadlineExceededError;

const CODES = {
  limited: 'PROTECTION_REJECTED',
  full: 'BULKHEAD_REJECTED',
  waited: 'BULKHEAD_REJECTED',
  open: 'BREAKER_OPEN',
  throttled: 'PROTECTION_REJECTED',
} as const;

/** The message of an error names the resource, so none of it is passed on. */
export function unavailableBodyOf(error: ProtectionFailure): UnavailableBody {
  if (error instanceof DeadlineExceededError) {
    return {
      status: 'error',
      statusCode: 504,
      code: 'DEADLINE_EXCEEDED',
      message: 'The service could not answer in time',
    };
  }
  const { reason, retryAfterMs } = error;
  return {
    status: 'error',
    statusCode: 503,
    code: CODES[reason],
    message: 'The service cannot answer this at the moment',
    ...(retryAfterMs > 0 && { retryAfterMs }),
  };
}

/**
 * Logs the resource of a rejection, which callers do not learn. One line a minute for each, since
 * rejections are there to make trouble cheap.
 */
export class TurnedAway {
  private readonly tally: Tally;
  private readonly logger = new Logger('Protection');

  constructor(clock: Pick<Clock, 'now'>) {
    this.tally = new Tally(clock);
  }

  add({ resource, code, message }: ProtectionFailure): void {
    const count = this.tally.add(`${code} ${resource}`);
    if (count === undefined) return;
    const requests = count === 1 ? '1 request' : `${count} requests`;
    this.logger.warn(`${requests} without an answer (${code}), the last one by ${message}`);
  }
}

/**
 * Answers requests that protection has turned away, and those whose resource was too slow, in the
 * form of their transport. The module binds it behind all filters of controllers and handlers.
 */
@Catch(ProtectionRejectedError, DeadlineExceededError)
export class ProtectionFilter implements ExceptionFilter<ProtectionFailure>, OnModuleInit {
  /** @internal */
  constructor(
    @Optional() @Inject(Transports) private readonly transports: Transports | undefined,
    @Optional() @Inject(TurnedAway) private readonly turnedAway: TurnedAway | undefined,
  ) {}

  onModuleInit(): void {
    if (this.transports === undefined) throw new ModuleMissingError('ProtectionFilter');
  }

  catch(error: ProtectionFailure, host: ArgumentsHost): unknown {
    const transport = this.transports?.find(host);
    // A global filter meets contexts of transports that are unknown here.
    if (transport === undefined) throw error;
    this.turnedAway?.add(error);
    return transport.turnAway(unavailableBodyOf(error), host, error);
  }
}
