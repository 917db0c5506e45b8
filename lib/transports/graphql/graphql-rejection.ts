import {
  RateLimitedException,
  RefusedException,
  type RateLimitedBody,
  type RefusedBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import { type Decision } from '../../limiter/decision.js';
import { waitSeconds } from '../shared/requests.js';

type Body = RateLimitedBody | RefusedBody | UnavailableBody;

/** The extensions of an error, which GraphQL sends along with its message. */
export interface GraphqlRejectionExtensions {
  readonly code: (RateLimitedBody | RefusedBody | UnavailableBody)['code'];
  /** Absent if it is not known. */
  readonly retryAfterMs?: number;
  readonly policy?: string;
  /** Apollo takes the answer's status and headers from here, and sends it no further. */
  readonly http: {
    readonly status: (RateLimitedBody | RefusedBody | UnavailableBody)['statusCode'];
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
    this.extensions = extensionsOf(this.body);
    // Nest's driver for Apollo looks for a status code in there, and would make it an internal error.
    Object.assign(this, { response: this.body.message });
  }
}

/** A field asks for the impossible. */
export class GraphqlRefusal extends RefusedException {
  readonly extensions: GraphqlRejectionExtensions;

  constructor(body: RefusedBody) {
    super(body);
    this.extensions = extensionsOf(body);
    Object.assign(this, { response: body.message });
  }
}

/** A resource of a field was not available. The cause is for the application: it is not sent. */
export class GraphqlUnavailable extends Error {
  readonly extensions: GraphqlRejectionExtensions;

  constructor(body: UnavailableBody, cause: Error) {
    super(body.message, { cause });
    this.name = 'GraphqlUnavailable';
    this.extensions = extensionsOf(body);
  }
}

function extensionsOf(body: Body): GraphqlRejectionExtensions {
  const { code, statusCode: status, policy, retryAfterMs } = body;
  const headers = new Map<string, string>();
  if (retryAfterMs !== undefined) headers.set('retry-after', String(waitSeconds(retryAfterMs)));
  return {
    code,
    ...(retryAfterMs !== undefined && { retryAfterMs }),
    ...(policy !== undefined && { policy }),
    http: { status, headers },
  };
}
