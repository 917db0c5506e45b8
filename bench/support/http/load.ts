import { connect, type Socket } from 'node:net';
import { once } from 'node:events';

const CONNECTIONS = 16;
/** The beginning of an answer. */
const STATUS = 'HTTP/1.1 ';

/** Connections that are open before the first request: setting them up is not what is measured. */
export class Load {
  private constructor(
    private readonly sockets: readonly Socket[],
    private readonly request: string,
    private readonly status: number,
  ) {}

  static async on(url: string, connections = CONNECTIONS, path = '/', status = 200): Promise<Load> {
    const { hostname, port, host } = new URL(url);
    const sockets = Array.from({ length: connections }, () => connect(Number(port), hostname));
    await Promise.all(sockets.map((socket) => once(socket, 'connect')));
    return new Load(sockets, `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`, status);
  }

  /** Sends so many requests, one at a time on each connection; fails if one has another status. */
  async send(requests: number): Promise<number> {
    const share = Math.ceil(requests / this.sockets.length);
    await Promise.all(this.sockets.map((socket) => this.sendOn(socket, share)));
    return share * this.sockets.length;
  }

  close(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  private sendOn(socket: Socket, requests: number): Promise<void> {
    return new Promise((resolve, reject) => {
      let left = requests;
      const onClose = (): void => reject(new Error('the server closed a connection'));
      const end = (): void => void socket.off('data', onData).off('close', onClose);
      const onData = (chunk: Buffer): void => {
        const text = chunk.toString('latin1');
        // Answers are small and come alone, since the next request is sent when one is here.
        if (!text.startsWith(`${STATUS}${this.status}`)) {
          end();
          return reject(new Error(`unexpected answer: ${text.slice(0, 100)}`));
        }
        if (--left > 0) return void socket.write(this.request);
        end();
        resolve();
      };
      socket.on('close', onClose).on('data', onData);
      socket.write(this.request);
    });
  }
}
