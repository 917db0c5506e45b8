import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { RateLimitedException } from './rate-limited.exception.js';
import { Transports } from './request-reader.js';

/** Answers denied requests in the words of their transport. Bound together with the guard. */
@Catch(RateLimitedException)
export class RateLimitFilter implements ExceptionFilter<RateLimitedException> {
  constructor(@Inject(Transports) private readonly transports: Transports) {}

  catch(exception: RateLimitedException, host: ArgumentsHost): unknown {
    return this.transports.of(host).answer(exception, host);
  }
}
