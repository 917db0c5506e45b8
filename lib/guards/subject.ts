import { type ArgumentsHost } from '@nestjs/common';

/** gRPC calls, of all four kinds. */
export interface GrpcCall {
  getPath(): string;
  getPeer(): string;
}

/**
 * The object that stands for a request wherever it is seen: by guards, interceptors and handlers
 * alike, which are given different contexts and lists of arguments for the same request.
 */
export function subjectOf(host: ArgumentsHost): object {
  const args = host.getArgs<unknown[]>();
  switch (host.getType<string>()) {
    case 'http': {
      // Fastify wraps the request; middleware sees the one inside.
      const request = args[0] as { raw?: object };
      return request.raw ?? request;
    }
    case 'rpc':
      return grpcCallOf(args) ?? (args[1] as object | undefined) ?? args;
    case 'graphql':
      return (args[2] as object | undefined) ?? args;
    default:
      return args;
  }
}

/** The call comes third, or first and alone where the handler does everything by itself. */
export function grpcCallOf(args: readonly unknown[]): GrpcCall | undefined {
  return isGrpcCall(args[2]) ? args[2] : isGrpcCall(args[0]) ? args[0] : undefined;
}

function isGrpcCall(value: unknown): value is GrpcCall {
  return typeof (value as Partial<GrpcCall> | undefined | null)?.getPath === 'function';
}
