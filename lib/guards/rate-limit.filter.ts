import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { GuardFailure } from './guard-failure.js';
import { RateLimitedException } from './rate-limited.exception.js';
import { RefusedException } from './refused.exception.js';
import { Transports } from './request-reader.js';

type Caught = RateLimitedException | RefusedException | GuardFailure;

/** Answers denied requests in the words of their transport. Bound together with the guard. */
@Catch(RateLimitedException, RefusedException, GuardFailure)
export class RateLimitFilter implements ExceptionFilter<Caught> {
  constructor(@Inject(Transports) private readonly transports: Transports) {}

  catch(exception: Caught, host: ArgumentsHost): unknown {
    const transport = this.transports.of(host);
    return exception instanceof GuardFailure
      ? transport.answerFailure?.(exception.cause, host)
      : transport.answer(exception, host);
  }
}
