import { EventEmitter } from 'node:events';
import { type INestApplication } from '@nestjs/common';
import { AbstractWsAdapter, type MessageMappingProperties } from '@nestjs/websockets';
import { EMPTY, filter, fromEvent, mergeMap, type Observable } from 'rxjs';

const OPEN = 1;
const CLOSED = 3;

/** The server's end of a connection, with what the sockets of the package `ws` have. */
export class PlainSocket extends EventEmitter {
  readyState = OPEN;
  readonly _socket: { readonly remoteAddress: string };
  readonly sent: unknown[] = [];
  closedWith: readonly [number, string] | undefined;

  constructor(remoteAddress: string) {
    super();
    this._socket = { remoteAddress };
  }

  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }

  close(code: number, reason: string): void {
    this.closedWith = [code, reason];
    this.readyState = CLOSED;
    this.emit('close');
  }

  /** A message from the client. */
  receive(event: string, data: unknown): void {
    this.emit('message', JSON.stringify({ event, data }));
  }
}

class PlainServer extends EventEmitter {
  close(): void {
    this.removeAllListeners();
  }
}

/** Binds gateways to plain sockets the way that Nest's adapter for `ws` does. */
export class PlainAdapter extends AbstractWsAdapter {
  readonly server = new PlainServer();

  constructor(app: INestApplication) {
    super(app);
  }

  override create(): PlainServer {
    return this.server;
  }

  connect(remoteAddress = '192.0.2.1'): PlainSocket {
    const socket = new PlainSocket(remoteAddress);
    this.server.emit('connection', socket);
    return socket;
  }

  override bindMessageHandlers(
    client: PlainSocket,
    handlers: MessageMappingProperties[],
    transform: (data: unknown) => Observable<unknown>,
  ): void {
    fromEvent(client, 'message')
      .pipe(
        mergeMap((text) => {
          const { event, data } = JSON.parse(text as string) as { event: string; data: unknown };
          const handler = handlers.find(({ message }) => message === event);
          return handler === undefined ? EMPTY : transform(handler.callback(data, event));
        }),
        filter((response) => response !== undefined),
      )
      .subscribe((response) => client.send(JSON.stringify(response)));
  }

  override close(): Promise<void> {
    return Promise.resolve();
  }
}
