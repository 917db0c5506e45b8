import { type Observable } from 'rxjs';
import { type MessageContext, type RmqChannel } from './message-context.js';

/** Nest's server for RabbitMQ, as far as it is read here. */
interface RmqServer {
  readonly noAck: boolean;
  /** Wraps the channel that messages come with, which is another one after a reconnect. */
  readonly channel?: { readonly _channel?: RmqChannel } | null;
}

/**
 * Acknowledges denied messages, which no handler will do: unacknowledged ones fill the prefetch
 * window until nothing is delivered any more. An acknowledgement that the broker does not expect
 * closes the channel, so it must be known how its messages are consumed; only the server knows that.
 */
export class RmqReceipts {
  private readonly servers: RmqServer[] = [];

  /** `started` emits the servers of all microservices of the application. */
  constructor(started: Observable<unknown>) {
    started.subscribe((server) => {
      if (isRmqServer(server)) this.servers.push(server);
    });
  }

  /** The answer to a request is its error; an event goes to the dead letters, if there are any. */
  give(context: MessageContext, isOneWay: boolean): void {
    const channel = context.getChannelRef!();
    if (!this.areExpectedOn(channel)) return;
    const message = context.getMessage!();
    try {
      if (isOneWay) channel.nack(message, false, false);
      else channel.ack(message);
    } catch {
      // The channel is closed, and the broker will deliver the message again.
    }
  }

  private areExpectedOn(channel: RmqChannel): boolean {
    const [first, ...others] = this.servers;
    const agree = others.every(({ noAck }) => noAck === first?.noAck);
    const server = agree ? first : this.servers.find((one) => one.channel?._channel === channel);
    return server?.noAck === false;
  }
}

function isRmqServer(server: unknown): server is RmqServer {
  const { noAck } = (server ?? {}) as Partial<RmqServer>;
  return typeof noAck === 'boolean';
}
