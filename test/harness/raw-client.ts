import { type Socket, connect } from 'node:net';

/** A client without a mind of its own: what a real one would make of the bytes is not the point. */
export class RawClient {
  received = '';
  closed = false;

  private constructor(private readonly socket: Socket) {
    socket.setEncoding('latin1');
    socket.on('data', (text) => (this.received += text.toString()));
    socket.on('error', () => undefined);
    socket.on('close', () => (this.closed = true));
  }

  static connect(port: number): Promise<RawClient> {
    return new Promise((resolve, reject) => {
      const socket = connect({ host: '127.0.0.1', port });
      socket.once('error', reject);
      socket.once('connect', () => resolve(new RawClient(socket)));
    });
  }

  /** Redis takes a command as a plain line as well. */
  send(command: string): void {
    this.socket.write(`${command}\r\n`);
  }

  close(): void {
    this.socket.destroy();
  }
}
