import { Catch, Inject, Optional, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import { ModuleMissingError } from '../common/errors.js';
import { DegradeTransports } from './degrade-transport.js';
import { DegradedException } from './degraded.exception.js';

/** Tells callers in the words of their transport that there is no answer. Bound with `@Degrade`. */
@Catch(DegradedException)
export class DegradedFilter implements ExceptionFilter<DegradedException> {
  constructor(
    @Optional()
    @Inject(DegradeTransports)
    private readonly transports: DegradeTransports | undefined,
  ) {}

  catch(exception: DegradedException, host: ArgumentsHost): unknown {
    if (this.transports === undefined) throw new ModuleMissingError('@Degrade');
    return this.transports.of(host)!.answer(exception, host);
  }
}
