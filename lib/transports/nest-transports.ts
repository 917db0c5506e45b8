import { type ArgumentsHost } from '@nestjs/common';
import { type RequestCounts } from '../requests/request-counts.js';
import { Transports, type Transport, type TransportName } from '../requests/transport.js';
import { grpcCallOf } from '../requests/subject.js';

/** The transports by the type of a context. */
export class NestTransports extends Transports {
  constructor(private readonly transports: Readonly<Record<TransportName, Transport>>) {
    super();
  }

  of(host: ArgumentsHost): Transport {
    const transport = this.find(host);
    if (transport !== undefined) return transport;
    throw new Error(`nestjs-weir cannot limit requests of the type '${typeOf(host)}'`);
  }

  find(host: ArgumentsHost): Transport | undefined {
    return (this.transports as Readonly<Record<string, Transport>>)[typeOf(host)];
  }

  counts(): ReadonlyMap<TransportName, RequestCounts> {
    const all = Object.entries(this.transports) as [TransportName, Transport][];
    return new Map(all.map(([name, { counts }]) => [name, counts]));
  }
}

/** Nest has one type for messages and for gRPC, which are as different as can be. */
function typeOf(host: ArgumentsHost): string {
  const type = host.getType<string>();
  return type === 'rpc' && grpcCallOf(host.getArgs()) !== undefined ? 'grpc' : type;
}
