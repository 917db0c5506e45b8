import { type ArgumentsHost } from '@nestjs/common';
import { grpcCallOf } from '../requests/subject.js';
import { DegradeTransports, type DegradeTransport } from '../degradation/degrade-transport.js';
import { hasOneRequest } from './grpc/server-calls.js';
import { messageContextOf, wantsNoReply } from './rpc/message-context.js';

export interface DegradeTransportsByType {
  readonly http: DegradeTransport;
  readonly grpc: DegradeTransport;
  readonly rpc: DegradeTransport;
}

/** The transports by the type of a context. */
export class NestDegradeTransports extends DegradeTransports {
  constructor(private readonly transports: DegradeTransportsByType) {
    super();
  }

  of(host: ArgumentsHost): DegradeTransport | undefined {
    switch (host.getType<string>()) {
      case 'http':
        return this.transports.http;
      case 'rpc':
        return this.ofCall(host);
      default:
        return undefined;
    }
  }

  private ofCall(host: ArgumentsHost): DegradeTransport | undefined {
    if (grpcCallOf(host.getArgs()) !== undefined) {
      return hasOneRequest(host) ? this.transports.grpc : undefined;
    }
    // Nobody would read the answer; and Kafka takes an error for a wish to see the message again.
    return wantsNoReply(messageContextOf(host)) === true ? undefined : this.transports.rpc;
  }
}
