import { HttpException } from '@nestjs/common';
import { InvalidArgumentError, UnknownAppError } from '../common/errors.js';
import { type RejectionBody } from './rejection.js';

/** What a caller is told whose request asks for what cannot be; trying again does not help. */
export interface RefusedBody extends RejectionBody {
  readonly statusCode: 400 | 413;
  readonly code: 'COST_OUT_OF_RANGE' | 'UNKNOWN_APP' | 'UNKNOWN_LIMIT';
}

/** A request was refused, not because there were too many. The transport puts it into its words. */
export class RefusedException extends HttpException {
  constructor(readonly body: RefusedBody) {
    super(body, body.statusCode, { description: body.message });
    this.message = body.message;
  }
}

/** A function of the application that says which limits hold has failed, or has said nonsense. */
export class UnknownLimit extends Error {
  constructor(override readonly cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
  }
}

/** What a caller can have brought about is its own fault; undefined for everything else. */
export function refusalOf(error: unknown): RefusedBody | undefined {
  if (error instanceof UnknownAppError) {
    return body(400, 'UNKNOWN_APP', 'The application is not known');
  }
  // A key that is empty or no text was cut out of what the caller sent.
  const hasNoKey = error instanceof InvalidArgumentError && error.field === 'key';
  if (hasNoKey || error instanceof UnknownLimit) {
    return body(400, 'UNKNOWN_LIMIT', 'It cannot be told which limits hold for this request');
  }
  if (error instanceof InvalidArgumentError && error.field === 'cost') {
    return body(413, 'COST_OUT_OF_RANGE', 'The request costs what no request may cost');
  }
  return undefined;
}

function body(
  statusCode: RefusedBody['statusCode'],
  code: RefusedBody['code'],
  message: string,
): RefusedBody {
  return { status: 'error', statusCode, code, message };
}
