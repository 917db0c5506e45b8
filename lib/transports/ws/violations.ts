import { type Decision } from '../../limiter/decision.js';
import { closeSocket, type Socket } from './sockets.js';

/** How gateways treat their clients. The initial values are the defaults. */
export class WebsocketOptions {
  /** After that many denials in a row a client is disconnected; without a number never. */
  closeAfter = Infinity;
}

/** RFC 6455: the client does what it must not. */
const POLICY_VIOLATION = 1008;
/** The registry of close codes: the service is at its capacity. */
const TRY_AGAIN_LATER = 1013;

/** Counts denials in a row, and ends the connection of clients that do not take no for an answer. */
export class Violations {
  private readonly inARow = new WeakMap<Socket, number>();

  constructor(private readonly closeAfter: number) {}

  decided(socket: Socket, { allowed, tier }: Decision): void {
    if (this.closeAfter === Infinity) return;
    if (allowed) {
      this.inARow.delete(socket);
      return;
    }
    const count = (this.inARow.get(socket) ?? 0) + 1;
    this.inARow.set(socket, count);
    if (count !== this.closeAfter) return;
    const [code, reason] =
      tier === 'cluster' ? [TRY_AGAIN_LATER, 'OVERLOADED'] : [POLICY_VIOLATION, 'RATE_LIMITED'];
    // The filter has not answered yet, and a client should hear why before it is gone.
    setImmediate(closeSocket, socket, code, reason);
  }
}
