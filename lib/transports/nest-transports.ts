import { type ArgumentsHost } from '@nestjs/common';
import { Transports, type Transport } from '../guards/index.js';

/** The transports by the type of a context. */
export class NestTransports extends Transports {
  constructor(private readonly transports: Readonly<Record<string, Transport>>) {
    super();
  }

  of(host: ArgumentsHost): Transport {
    const transport = this.transports[host.getType<string>()];
    if (transport !== undefined) return transport;
    throw new Error(`nestjs-weir cannot limit requests of the type '${host.getType<string>()}'`);
  }
}
