import { HttpException, HttpStatus } from '@nestjs/common';
import type { Response } from 'express';

/** 429, with the seconds to wait in the header that clients know. */
export function tooManyRequests(response: Response, retryAfterMs: number): HttpException {
  response.setHeader('Retry-After', Math.ceil(retryAfterMs / 1000));
  const statusCode = HttpStatus.TOO_MANY_REQUESTS;
  return new HttpException({ statusCode, message: 'Too Many Requests' }, statusCode);
}
