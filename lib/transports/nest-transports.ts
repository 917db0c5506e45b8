import { type ArgumentsHost } from '@nestjs/common';
import { Transports, type Transport } from '../requests/transport.js';
import { grpcCallOf } from '../requests/subject.js';

/** The transports by the type of a context. */
export class NestTransports extends Transports {
  constructor(private readonly transports: Readonly<Record<string, Transport>>) {
    super();
  }

  of(host: ArgumentsHost): Transport {
    const type = typeOf(host);
    const transport = this.transports[type];
    if (transport !== undefined) return transport;
    throw new Error(`nestjs-weir cannot limit requests of the type '${type}'`);
  }

  find(host: ArgumentsHost): Transport | undefined {
    return this.transports[typeOf(host)];
  }
}

/** Nest has one type for messages and for gRPC, which are as different as can be. */
function typeOf(host: ArgumentsHost): string {
  const type = host.getType<string>();
  return type === 'rpc' && grpcCallOf(host.getArgs()) !== undefined ? 'grpc' : type;
}
