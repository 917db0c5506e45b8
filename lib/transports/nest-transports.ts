import { type ArgumentsHost } from '@nestjs/common';
import { grpcCallOf, Transports, type Transport } from '../guards/index.js';

/** The transports by the type of a context. */
export class NestTransports extends Transports {
  constructor(private readonly transports: Readonly<Record<string, Transport>>) {
    super();
  }

  of(host: ArgumentsHost): Transport {
    const transport = this.transports[typeOf(host)];
    if (transport !== undefined) return transport;
    throw new Error(`nestjs-weir cannot limit requests of the type '${host.getType<string>()}'`);
  }
}

/** Nest calls gRPC and all other microservices 'rpc'. */
function typeOf(host: ArgumentsHost): string {
  const type = host.getType<string>();
  return type === 'rpc' && grpcCallOf(host.getArgs<unknown[]>()) !== undefined ? 'grpc' : type;
}
