import { EventEmitter } from 'node:events';
import { type Cancel } from '../../../common/clock.js';
import { type RedisDriver } from '../../../stores/redis/connection.js';
import { type BinaryArgument } from '../../../stores/redis/scripts.js';
import { type Machine } from '../engine/machine.js';
import { type Connection, type VirtualLinks } from './virtual-links.js';
import { type Reply } from './virtual-redis.js';

/** Settings of ioredis for a connection, as far as they matter here; with its own defaults. */
interface ClientOptions {
  readonly retryStrategy?: (attempt: number) => number | null | void;
  readonly connectTimeout?: number;
  readonly disconnectTimeout?: number;
  readonly socketTimeout?: number;
  readonly lazyConnect?: boolean;
}

/** Beside those of scripts, which are defined by name. */
const COMMANDS = [
  ...['get', 'set', 'mget', 'getrange', 'del', 'pexpire', 'ping', 'info', 'subscribe'],
  ...['hget', 'hmget', 'hgetall', 'hset', 'hdel', 'lrange', 'zrem'],
];

interface Pending {
  resolve(reply: Reply): void;
  reject(error: Error): void;
}

const CONNECT_TIMEOUT_MS = 10_000;
const DISCONNECT_TIMEOUT_MS = 2000;

/**
 * A client of ioredis, as lib/stores/redis uses one, at the near end of a virtual network. Replies
 * carry no name: each goes to the call that has waited longest, as in the real one, so a reply that
 * comes twice puts all that follow out of step.
 */
export class VirtualClient extends EventEmitter {
  status = 'wait';
  private connection: Connection | undefined;
  /** The calls that wait for their replies, under the name that ioredis has for them. */
  private commandQueue: Pending[] = [];
  private bytesRead = 0;
  private attempts = 0;
  private isEnding = false;
  private cancelRetry: Cancel | undefined;
  private cancelConnect: Cancel | undefined;
  private cancelSocketTimeout: Cancel | undefined;

  constructor(
    private readonly machine: Machine,
    private readonly links: VirtualLinks,
    readonly options: ClientOptions = {},
  ) {
    super();
    this.setMaxListeners(0);
    for (const command of COMMANDS) this.defineCommand(command);
    if (options.lazyConnect !== true) void this.connect();
  }

  /** Another connection of the same process. */
  duplicate(other: ClientOptions = {}): VirtualClient {
    return new VirtualClient(this.machine, this.links, { ...this.options, ...other });
  }

  /** The socket, as far as anybody looks at it. */
  get stream(): { bytesRead: number; destroy(reason?: Error): void } | undefined {
    const { connection } = this;
    if (connection === undefined) return undefined;
    const destroy = (reason?: Error): void => {
      this.machine.clock.after(0, () => this.closed(connection, reason));
    };
    return { bytesRead: this.bytesRead, destroy };
  }

  defineCommand(name: string): void {
    const send = (...args: unknown[]): Promise<Reply> =>
      this.send(name, args.flat() as BinaryArgument[]);
    Object.assign(this, { [name]: send, [`${name}Buffer`]: send });
  }

  connect(): Promise<void> {
    this.status = 'connecting';
    this.connection = this.links.open(this.machine, {
      opened: (connection) => this.opened(connection),
      refused: (connection) => this.closed(connection, new Error('connect ECONNREFUSED')),
      replied: (connection, reply) => this.replied(connection, reply),
      closed: (connection) => this.closed(connection),
      told: (_, channel, text) => this.emit('message', channel, text),
    });
    const { connection } = this;
    const timeoutMs = this.options.connectTimeout ?? CONNECT_TIMEOUT_MS;
    this.cancelConnect = this.machine.clock.after(timeoutMs, () => {
      if (connection === this.connection && this.status === 'connecting') {
        this.closed(connection, new Error('connect ETIMEDOUT'));
      }
    });
    return Promise.resolve();
  }

  disconnect(reconnect = false): void {
    if (!reconnect) {
      this.isEnding = true;
      this.cancelRetry?.();
    }
    const { connection } = this;
    if (connection === undefined) return this.end();
    // The far end of a dead connection says nothing, so the socket is destroyed after a while.
    const timeoutMs = this.options.disconnectTimeout ?? DISCONNECT_TIMEOUT_MS;
    this.machine.clock.after(connection.isDeaf ? timeoutMs : 0, () => this.closed(connection));
  }

  private send(command: string, args: readonly BinaryArgument[]): Promise<Reply> {
    if (this.status !== 'ready') {
      return Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue is false"));
    }
    return this.exchange(command, args);
  }

  private exchange(command: string, args: readonly BinaryArgument[]): Promise<Reply> {
    return new Promise((resolve, reject) => {
      this.commandQueue.push({ resolve, reject });
      this.connection!.send(command, args);
      if (this.cancelSocketTimeout === undefined) this.armSocketTimeout();
    });
  }

  private opened(connection: Connection): void {
    if (connection !== this.connection) return;
    this.cancelConnect?.();
    this.status = 'connect';
    this.emit('connect');
    void this.exchange('info', []).then(
      () => {
        if (connection !== this.connection) return;
        this.attempts = 0;
        this.status = 'ready';
        this.emit('ready');
      },
      () => {},
    );
  }

  private replied(connection: Connection, reply: Reply): void {
    if (connection !== this.connection) return;
    this.bytesRead++;
    this.cancelSocketTimeout?.();
    this.cancelSocketTimeout = undefined;
    const first = this.commandQueue.shift();
    if (this.commandQueue.length > 0) this.armSocketTimeout();
    if (reply instanceof Error) first?.reject(reply);
    else first?.resolve(reply);
  }

  private armSocketTimeout(): void {
    const { socketTimeout } = this.options;
    const { connection } = this;
    if (socketTimeout === undefined || connection === undefined) return;
    this.cancelSocketTimeout = this.machine.clock.after(socketTimeout, () => {
      this.closed(connection, new Error('Socket timeout'));
    });
  }

  private closed(connection: Connection, error?: Error): void {
    if (connection !== this.connection) return;
    connection.close();
    this.cancelConnect?.();
    this.connection = undefined;
    this.cancelSocketTimeout?.();
    this.cancelSocketTimeout = undefined;
    this.status = 'close';
    if (error !== undefined && this.listenerCount('error') > 0) this.emit('error', error);
    this.emit('close');
    const lost = this.commandQueue;
    this.commandQueue = [];
    for (const call of lost) call.reject(new Error('Connection is closed.'));
    if (this.isEnding) return this.end();
    const delayMs = this.options.retryStrategy?.(++this.attempts);
    if (typeof delayMs !== 'number') return this.end();
    this.status = 'reconnecting';
    this.emit('reconnecting', delayMs);
    this.cancelRetry = this.machine.clock.after(delayMs, () => void this.connect());
  }

  private end(): void {
    this.status = 'end';
    this.emit('end');
  }
}

/** Takes the place of ioredis for one process. */
export function virtualDriver(machine: Machine, links: VirtualLinks): RedisDriver {
  function Redis(...args: unknown[]): VirtualClient {
    return new VirtualClient(machine, links, args.at(-1) as ClientOptions);
  }
  return { Redis, Cluster: Redis } as unknown as RedisDriver;
}
