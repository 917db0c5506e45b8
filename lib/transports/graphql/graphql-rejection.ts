import { RateLimitedException, type RateLimitedBody } from '../../guards/index.js';
import { type Decision } from '../../limiter/decision.js';

/** What GraphQL sends along with the message of an error. */
export interface GraphqlRejectionExtensions {
  readonly code: RateLimitedBody['code'];
  readonly retryAfterMs: number;
  readonly policy?: string;
  /** Apollo takes the answer's status and headers from here, and sends it no further. */
  readonly http: {
    readonly status: RateLimitedBody['statusCode'];
    readonly headers: ReadonlyMap<string, string>;
  };
}

/**
 * A field was denied. GraphQL takes `extensions` over from whatever is thrown, so the answer is the
 * same whether or not a filter has seen it: fields may have guards but no filters.
 */
export class GraphqlRejection extends RateLimitedException {
  readonly extensions: GraphqlRejectionExtensions;

  constructor(decision: Decision) {
    super(decision);
    const { code, statusCode: status, policy, retryAfterMs, message } = this.body;
    const seconds = Math.max(1, Math.ceil(retryAfterMs / 1000));
    const headers = new Map([['retry-after', String(seconds)]]);
    this.extensions = {
      code,
      retryAfterMs,
      ...(policy !== undefined && { policy }),
      http: { status, headers },
    };
    // Nest's driver for Apollo looks for a status code in there, and would make it an internal error.
    Object.assign(this, { response: message });
  }
}
