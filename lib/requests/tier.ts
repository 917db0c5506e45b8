/** A request as the tier's resolver sees it: raw, and the same on all transports. */
export interface TierRequest {
  readonly transport: 'http' | 'grpc' | 'rpc' | 'ws' | 'graphql';
  /** The HTTP verb, the gRPC method, the pattern of a message or event. */
  readonly method: string;
  /** Of HTTP the path without its query, of gRPC the path of the call; of others the pattern. */
  readonly path: string;
  /** HTTP headers, metadata, headers of a message; names in small letters. */
  readonly headers: Readonly<Record<string, unknown>>;
}

/** The tier of a request by name; undefined for the lowest. Has to answer at once. */
export type TierResolver = (request: TierRequest) => string | undefined;

/** The tier of requests that run at once, and are never refused. */
export const EXEMPT = 'exempt';
