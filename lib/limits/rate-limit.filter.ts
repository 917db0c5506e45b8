import {
  Catch,
  Inject,
  Optional,
  type ArgumentsHost,
  type ExceptionFilter,
  type OnModuleInit,
} from '@nestjs/common';
import { ModuleMissingError } from '../common/errors.js';
import { GuardFailure, Transports } from '../requests/transport.js';
import { RateLimitedException, RefusedException } from '../requests/rejections.js';

type Caught = RateLimitedException | RefusedException | GuardFailure;

/** Answers denied requests in the form of their transport. Bound together with the guard. */
@Catch(RateLimitedException, RefusedException, GuardFailure)
export class RateLimitFilter implements ExceptionFilter<Caught>, OnModuleInit {
  constructor(
    @Optional() @Inject(Transports) private readonly transports: Transports | undefined,
  ) {}

  onModuleInit(): void {
    if (this.transports === undefined) throw new ModuleMissingError('RateLimitFilter');
  }

  catch(exception: Caught, host: ArgumentsHost): unknown {
    if (this.transports === undefined) throw new ModuleMissingError('RateLimitFilter');
    const transport = this.transports.of(host);
    return exception instanceof GuardFailure
      ? transport.answerFailure?.(exception.cause, host)
      : transport.answer(exception, host);
  }
}
