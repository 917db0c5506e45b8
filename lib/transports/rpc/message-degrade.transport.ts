import { HttpException, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { throwError, type Observable } from 'rxjs';
import {
  isServerFault,
  type DegradedException,
  type DegradeTransport,
  type RequestParts,
} from '../../interceptors/index.js';
import { PayloadDegrade } from '../payload-degrade.js';
import { messageContextOf } from './message-context.js';
import { messageHeaderOf } from './message-headers.js';
import { ownValueAt } from './own-value.js';

/** Messages that want an answer, answered in the place of their handler. */
export class MessageDegradeTransport extends PayloadDegrade implements DegradeTransport {
  hasCredentials(context: ExecutionContext): boolean {
    return ['authorization', 'cookie', 'x-api-key'].some(
      (name) => this.headerOf(context, name) !== undefined,
    );
  }

  userOf(context: ExecutionContext): unknown {
    return messageContextOf(context).user ?? ownValueAt(context.getArgByIndex(0), ['user']);
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return messageHeaderOf(messageContextOf(context), name);
  }

  partsOf(context: ExecutionContext): RequestParts {
    const body: unknown = context.getArgByIndex(0);
    return { request: messageContextOf(context), params: undefined, query: undefined, body };
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
