import { HttpException } from '@nestjs/common';
import { type DegradeReason } from './core/contract.js';

/** What a caller is told on any transport when nothing else is left to say. */
export interface DegradedBody {
  readonly status: 'error';
  readonly statusCode: 429 | 503;
  readonly code: 'DEGRADED';
  readonly message: string;
  readonly reason: DegradeReason;
}

const USUAL_MESSAGE = 'The service cannot answer this at the moment';

/** There is no answer but words. The transport's filter puts it into the transport's own. */
export class DegradedException extends HttpException {
  readonly body: DegradedBody;

  constructor(
    readonly reason: DegradeReason,
    message = USUAL_MESSAGE,
    statusCode: DegradedBody['statusCode'] = 503,
    cause?: unknown,
  ) {
    const body = { status: 'error', statusCode, code: 'DEGRADED', message, reason } as const;
    super(body, statusCode, { description: message, cause });
    this.body = body;
    this.message = message;
  }
}
