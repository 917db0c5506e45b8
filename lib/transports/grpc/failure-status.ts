import { type Logger } from '@nestjs/common';
import { CANCELLED, UNKNOWN } from './grpc-status.js';

/**
 * What Nest would make of an error: that of an RpcException is for the caller to see, any other is
 * for the log. Undefined stands for a caller that is gone.
 */
export function failureStatus(cause: unknown, logger: Pick<Logger, 'error'>): object {
  if (cause === undefined) return { code: CANCELLED, message: 'Cancelled' };
  const said = rpcErrorOf(cause);
  if (typeof said === 'object' && said !== null) return said;
  if (typeof said === 'string') return { code: UNKNOWN, message: said };
  logger.error(cause);
  return { code: UNKNOWN, message: 'Internal server error' };
}

/** By its method: the class belongs to a package that may not be there. */
function rpcErrorOf(cause: unknown): unknown {
  const { getError } = cause as { getError?: unknown };
  return typeof getError === 'function' ? getError.call(cause) : undefined;
}
