import {
  Catch,
  HttpException,
  Inject,
  Optional,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { ModuleMissingError } from '../common/errors.js';
import { RateLimitedException, type UnansweredBody } from '../requests/rejections.js';
import { Transports } from '../requests/transport.js';
import { type DegradeReason } from './core/contract.js';

/** The answer on any transport when nothing else is left. */
export interface DegradedBody extends UnansweredBody {
  readonly code: 'DEGRADED';
  readonly reason: DegradeReason;
}

const USUAL_MESSAGE = 'The service cannot answer this at the moment';

/** There is no answer but a message. The filter sends it in the form of the transport. */
export class DegradedException extends HttpException {
  readonly body: DegradedBody;

  constructor(
    readonly reason: DegradeReason,
    message = USUAL_MESSAGE,
    statusCode: DegradedBody['statusCode'] = 503,
    cause?: unknown,
    /** Of a caller over its limit. */
    retryAfterMs?: number,
  ) {
    const body = {
      ...({ status: 'error', statusCode, code: 'DEGRADED', message, reason } as const),
      ...(retryAfterMs !== undefined && { retryAfterMs }),
    };
    super(body, statusCode, { description: message, cause });
    this.body = body;
    this.message = message;
  }
}

/** Answers in the form of the transport where nothing stands in for the handler. Bound with `@Degrade`. */
@Catch(DegradedException, RateLimitedException)
export class DegradedFilter implements ExceptionFilter<DegradedException | RateLimitedException> {
  constructor(
    @Optional()
    @Inject(Transports)
    private readonly transports: Transports | undefined,
  ) {}

  catch(exception: DegradedException | RateLimitedException, host: ArgumentsHost): unknown {
    if (this.transports === undefined) throw new ModuleMissingError('@Degrade');
    // Refused by the line, and not in the caches; the route may have no `@RateLimit`, whose filter would say so.
    if (exception instanceof RateLimitedException) {
      return this.transports.of(host).answer(exception, host);
    }
    return this.transports.of(host).substitutes!.answerWithout(exception.body, host);
  }
}
