import { HttpException, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import { type CredentialHeaders } from '../../degradation/credential-headers.js';
import { type DegradeTransport, type RequestParts } from '../../degradation/degrade-transport.js';
import { type DegradedException } from '../../degradation/degraded.exception.js';
import { isServerFault } from '../../degradation/failures.js';
import { PayloadDegrade } from '../shared/substitutes.js';
import {
  messageContextOf,
  messageHeaderNames,
  messageHeaderOf,
  subjectNameOf,
} from './message-context.js';

/** Messages that want an answer, answered in the place of their handler. */
export class MessageDegradeTransport extends PayloadDegrade implements DegradeTransport {
  hasCredentials(context: ExecutionContext, known: CredentialHeaders): boolean {
    return messageHeaderNames(messageContextOf(context)).some((name) => known.has(name));
  }

  /** What a guard has found out. A sender may call itself what it likes. */
  userOf(context: ExecutionContext): unknown {
    return messageContextOf(context).user;
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return messageHeaderOf(messageContextOf(context), name);
  }

  partsOf(context: ExecutionContext): RequestParts {
    const body: unknown = context.getArgByIndex(0);
    return { request: messageContextOf(context), params: undefined, query: undefined, body };
  }

  protected placeOf(context: ExecutionContext): string | undefined {
    return subjectNameOf(messageContextOf(context));
  }

  /** A broker does not say who has gone; and what was asked over TCP may as well be finished. */
  isAborted(): boolean {
    return false;
  }

  isFailure(error: unknown): boolean {
    if (error instanceof HttpException) return isServerFault(error);
    const { getError } = error as { getError?: () => unknown };
    const status = typeof getError === 'function' ? getError.call(error) : undefined;
    const { statusCode } = (status ?? {}) as { statusCode?: unknown };
    return typeof statusCode !== 'number' || statusCode >= 500;
  }

  /** There is no place for it but in the answer itself: see `field`. */
  mark(): void {}

  answer({ body }: DegradedException, _host: ArgumentsHost): Observable<unknown> {
    return throwError(() => body);
  }
}
