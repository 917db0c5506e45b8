import { type GrpcMetadata, type MetadataClass } from './grpc-status.js';
import { type ServerCall } from './server-calls.js';

interface EndingCall {
  sendStatus(status: { readonly metadata?: GrpcMetadata | null }): void;
}

/**
 * Puts something into the trailers of a call that ends well. Nest has no way to say them, so the
 * end of this one call is intercepted; where grpc-js does not show it, nothing is said.
 */
export function addTrailer(call: ServerCall, name: string, value: string): void {
  const { call: inner } = call as { call?: Partial<EndingCall> };
  const sendStatus = inner?.sendStatus;
  if (typeof sendStatus !== 'function') return;
  inner!.sendStatus = (status) => {
    const metadata = status.metadata ?? new (call.metadata.constructor as MetadataClass)();
    metadata.set(name, value);
    sendStatus.call(inner, { ...status, metadata });
  };
}
