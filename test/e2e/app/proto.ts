import { ROUTES, type RouteName } from './routes.js';

/** A service for each kind of call, with a method for every route. */
export const GRPC_KINDS = ['Unary', 'ServerStream', 'ClientStream', 'DuplexStream'] as const;
export type GrpcKind = (typeof GRPC_KINDS)[number];

export const PACKAGE = 'weir.test';

/** gRPC's names begin with a capital. */
export const rpcOf = (route: RouteName): string => route[0]!.toUpperCase() + route.slice(1);

export const isStreamOfRequests = (kind: GrpcKind): boolean =>
  kind === 'ClientStream' || kind === 'DuplexStream';

const isStreamOfReplies = (kind: GrpcKind): boolean =>
  kind === 'ServerStream' || kind === 'DuplexStream';

export const protoText = (): string => `
syntax = "proto3";
package ${PACKAGE};
message Item {}
message Reply { string text = 1; }
${GRPC_KINDS.map(serviceText).join('\n')}
`;

function serviceText(kind: GrpcKind): string {
  const request = isStreamOfRequests(kind) ? 'stream Item' : 'Item';
  const reply = isStreamOfReplies(kind) ? 'stream Reply' : 'Reply';
  const methods = ROUTES.map((route) => `rpc ${rpcOf(route)} (${request}) returns (${reply});`);
  return `service ${kind} { ${methods.join(' ')} }`;
}
