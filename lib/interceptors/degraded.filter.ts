import { Catch, Inject, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { DegradeTransports } from './degrade-transport.js';
import { DegradedException } from './degraded.exception.js';

/** Tells callers in the words of their transport that there is no answer. Bound with `@Degrade`. */
@Catch(DegradedException)
export class DegradedFilter implements ExceptionFilter<DegradedException> {
  constructor(@Inject(DegradeTransports) private readonly transports: DegradeTransports) {}

  catch(exception: DegradedException, host: ArgumentsHost): unknown {
    return this.transports.of(host)!.answer(exception, host);
  }
}
