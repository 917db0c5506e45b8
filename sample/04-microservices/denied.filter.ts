import { Catch, HttpException, type ArgumentsHost } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import type { Response } from 'express';
import { isRateLimitError, retryAfterMsOf } from 'nestjs-weir';

/** The service's denial, in the words of HTTP. */
@Catch()
export class DeniedFilter extends BaseExceptionFilter {
  override catch(error: unknown, host: ArgumentsHost): void {
    if (!isRateLimitError(error)) return super.catch(error, host);
    const response = host.switchToHttp().getResponse<Response>();
    response.setHeader('Retry-After', Math.max(1, Math.ceil(retryAfterMsOf(error)! / 1000)));
    super.catch(new HttpException(error, error.code === 'OVERLOADED' ? 503 : 429), host);
  }
}
