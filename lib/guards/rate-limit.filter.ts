import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { GuardFailure } from './guard-failure.js';
import { RateLimitedException } from './rate-limited.exception.js';
import { Transports } from './request-reader.js';

/** Answers denied requests in the words of their transport. Bound together with the guard. */
@Catch(RateLimitedException, GuardFailure)
export class RateLimitFilter implements ExceptionFilter<RateLimitedException | GuardFailure> {
  constructor(@Inject(Transports) private readonly transports: Transports) {}

  catch(exception: RateLimitedException | GuardFailure, host: ArgumentsHost): unknown {
    const transport = this.transports.of(host);
    return exception instanceof GuardFailure
      ? transport.answerFailure?.(exception.cause, host)
      : transport.answer(exception, host);
  }
}
