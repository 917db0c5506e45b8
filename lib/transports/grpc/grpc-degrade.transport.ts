import { HttpException, type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { throwError } from 'rxjs';
import { type CredentialHeaders } from '../../degradation/credential-headers.js';
import {
  type DegradeMark,
  type DegradeTransport,
  type RequestParts,
} from '../../degradation/degrade-transport.js';
import { type DegradedException } from '../../degradation/degraded.exception.js';
import { isServerFault } from '../../degradation/failures.js';
import { markText, PayloadDegrade } from '../shared/substitutes.js';
import { RESOURCE_EXHAUSTED, UNAVAILABLE, type MetadataClass } from './grpc-status.js';
import { callOf, headerOfCall, type ServerCall } from './server-calls.js';
import { addTrailer } from './trailers.js';

const DEGRADED = 'x-degraded';
/** UNKNOWN, DEADLINE_EXCEEDED, RESOURCE_EXHAUSTED, INTERNAL, UNAVAILABLE, DATA_LOSS. */
const FAULTS: ReadonlySet<number> = new Set([2, 4, 8, 13, 14, 15]);

/** Calls with one request, answered in the place of their handler. */
export class GrpcDegradeTransport extends PayloadDegrade implements DegradeTransport {
  hasCredentials(context: ExecutionContext, known: CredentialHeaders): boolean {
    const call = callOf(context);
    for (const name in call.metadata.getMap()) {
      if (known.has(name)) return true;
    }
    return call.getAuthContext?.().sslPeerCertificate !== undefined;
  }

  userOf(context: ExecutionContext): unknown {
    return callOf(context).user;
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return headerOfCall(callOf(context), name);
  }

  partsOf(context: ExecutionContext): RequestParts {
    const body: unknown = context.getArgByIndex(0);
    return { request: callOf(context), params: undefined, query: undefined, body };
  }

  protected placeOf(context: ExecutionContext): string {
    return callOf(context).getPath();
  }

  isAborted(context: ExecutionContext): boolean {
    return callOf(context).cancelled;
  }

  isFailure(error: unknown): boolean {
    if (error instanceof HttpException) return isServerFault(error);
    const code = codeOf(error);
    return code === undefined || FAULTS.has(code);
  }

  mark(context: ExecutionContext, mark: DegradeMark): void {
    const { level, ageMs } = mark;
    const age = level > 2 ? '' : `; age=${Math.max(0, Math.floor(ageMs / 1000))}`;
    addTrailer(callOf(context), DEGRADED, `${markText(mark)}${age}`);
  }

  answer({ body }: DegradedException, host: ArgumentsHost): unknown {
    const { statusCode, message, reason } = body;
    const metadata = new (metadataClassOf(callOf(host)))();
    metadata.set(DEGRADED, `level=4; reason=${reason}`);
    const code = statusCode === 429 ? RESOURCE_EXHAUSTED : UNAVAILABLE;
    return throwError(() => ({ code, message, details: message, metadata }));
  }
}

/** Of a status that a handler threw, or that Nest has wrapped into an RpcException. */
function codeOf(error: unknown): number | undefined {
  const { getError } = error as { getError?: () => unknown };
  const status = typeof getError === 'function' ? getError.call(error) : error;
  const code = (status as { code?: unknown } | null | undefined)?.code;
  return typeof code === 'number' ? code : undefined;
}

function metadataClassOf({ metadata }: ServerCall): MetadataClass {
  return metadata.constructor as MetadataClass;
}
