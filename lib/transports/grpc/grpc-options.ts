/** How gRPC callers are told about their limits. The initial values are the defaults. */
export class GrpcOptions {
  /**
   * Sends `ratelimit` and `ratelimit-policy` as initial metadata. A call has only one: what the
   * handler sends with `sendMetadata` is then too late.
   */
  metadata = false;
  /** `ErrorInfo.domain` of denials: the service that the reason belongs to. */
  domain = 'nestjs-weir';
}
