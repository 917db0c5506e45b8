import { once } from 'node:events';
import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

const REDIS_PORT = 6379;

/** Stands between the application and Redis, so that Redis can be switched off for the one, not for all. */
export class RedisSwitch {
  private isOn = true;
  private readonly sockets = new Set<Socket>();

  private constructor(
    private readonly server: Server,
    /** Where the application finds Redis. */
    readonly url: string,
  ) {}

  static async before(redisUrl: string): Promise<RedisSwitch> {
    const target = new URL(redisUrl);
    const server = createServer().listen(0, '127.0.0.1');
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const here = new URL(redisUrl);
    here.host = `127.0.0.1:${port}`;
    const redis = new RedisSwitch(server, here.href);
    server.on('connection', (socket: Socket) => {
      redis.pass(socket, target.hostname, Number(target.port || REDIS_PORT));
    });
    return redis;
  }

  get position(): 'on' | 'off' {
    return this.isOn ? 'on' : 'off';
  }

  turn(position: 'on' | 'off'): void {
    this.isOn = position === 'on';
    if (!this.isOn) this.cut();
  }

  close(): void {
    this.server.close();
    this.cut();
  }

  private pass(client: Socket, host: string, port: number): void {
    if (!this.isOn) {
      client.destroy();
      return;
    }
    const redis = connect(port, host);
    for (const [one, other] of [
      [client, redis],
      [redis, client],
    ] as const) {
      this.sockets.add(one);
      one.setNoDelay(true).pipe(other);
      // That it is gone is told by its end.
      one.on('error', () => undefined);
      one.once('close', () => {
        this.sockets.delete(one);
        other.destroy();
      });
    }
  }

  private cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }
}
