import { Catch, type ArgumentsHost, type ExceptionFilter } from '@nestjs/common';
import type { Response } from 'express';
import { AcquireTimeoutError } from 'nestjs-weir';
import { tooManyRequests } from './too-many-requests.js';

/** A wait that would have been too long is a refusal, not a fault of the server. */
@Catch(AcquireTimeoutError)
export class AcquireTimeoutFilter implements ExceptionFilter<AcquireTimeoutError> {
  catch(error: AcquireTimeoutError, host: ArgumentsHost): void {
    const response = host.switchToHttp().getResponse<Response>();
    const refusal = tooManyRequests(response, error.retryAfterMs);
    response.status(refusal.getStatus()).json(refusal.getResponse());
  }
}
