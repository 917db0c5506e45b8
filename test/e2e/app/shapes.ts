import { Controller, Get } from '@nestjs/common';
import { GrpcMethod, GrpcStreamMethod, MessagePattern } from '@nestjs/microservices';
import { from, map, toArray, type Observable } from 'rxjs';
import { isStreamOfRequests, rpcOf, type GrpcKind } from './proto.js';
import { type Shape } from './routes.js';

export const HTTP: Shape = {
  host: () => Controller(),
  route: (name) => Get(name),
  reply: (_request, text) => ({ text }),
};

export const MESSAGES: Shape = {
  host: () => Controller(),
  route: (name) => MessagePattern(name),
  reply: (_data, text) => ({ text }),
};

export function grpcShape(kind: GrpcKind): Shape {
  const decorator = isStreamOfRequests(kind) ? GrpcStreamMethod : GrpcMethod;
  return {
    host: () => Controller(),
    route: (name) => decorator(kind, rpcOf(name)),
    reply: (input, text) => grpcReply(kind, input as Observable<unknown>, { text }),
  };
}

function grpcReply(kind: GrpcKind, items: Observable<unknown>, reply: object): unknown {
  switch (kind) {
    case 'Unary':
      return reply;
    case 'ServerStream':
      return from([reply, reply]);
    case 'ClientStream':
      return items.pipe(
        toArray(),
        map(() => reply),
      );
    case 'DuplexStream':
      return items.pipe(map(() => reply));
  }
}
