import type { Cluster, Redis } from 'ioredis';
import { type Cancel, type Clock } from '../../common/clock.js';
import { later } from '../../common/later.js';
import { DISCONNECT_TIMEOUT_MS, reconnectDelayMs } from './connection.js';
import { watchSilence } from './silence.js';

/** Nothing is asked on a connection that listens; so it is asked for a sign of life. */
const PING_MS = 1000;

/**
 * Listens for new revisions on a connection of its own: one that is subscribed can do nothing else.
 * After each subscription it says that something may have been missed; so there is no moment between
 * reading and listening. On Redis Cluster every node tells all messages, so any of them will do, and
 * after a loss another one is asked.
 */
export class ConfigHints {
  private connection: Redis | undefined;
  private retry: Cancel | undefined;
  private stopWatch: Cancel | undefined;
  private attempts = 0;
  private closed = false;

  constructor(
    private readonly client: Redis | Cluster,
    private readonly channel: string,
    private readonly clock: Pick<Clock, 'every' | 'soon'>,
    private readonly hint: (revision?: number) => void,
  ) {
    this.connect();
  }

  close(): void {
    this.closed = true;
    this.retry?.();
    this.stopWatch?.();
    this.connection?.disconnect();
  }

  private connect(): void {
    const connection = this.duplicate();
    if (connection === undefined) return this.connectLater();
    this.connection = connection;
    // 'end' follows each error.
    connection.on('error', () => {});
    connection.on('end', () => this.connectLater());
    connection.on('ready', () => void this.listen(connection));
    connection.on('message', (_channel: string, message: string) => this.told(message));
    connection.connect().catch(() => {});
    const stopPings = this.clock.every(PING_MS, () => {
      if (connection.status === 'ready') connection.ping().catch(() => {});
    });
    const stopLooks = watchSilence(connection, this.clock);
    this.stopWatch = () => {
      stopPings();
      stopLooks();
    };
  }

  private connectLater(): void {
    this.connection = undefined;
    this.stopWatch?.();
    if (this.closed) return;
    this.retry = later(this.clock, reconnectDelayMs(++this.attempts), () => this.connect());
  }

  private async listen(connection: Redis): Promise<void> {
    try {
      await connection.subscribe(this.channel);
      this.attempts = 0;
      this.hint();
    } catch {
      connection.disconnect();
    }
  }

  /** Whatever is sent, reading finds out what holds; a number that is known saves the look. */
  private told(message: string): void {
    const revision = Number(message);
    if (Number.isSafeInteger(revision) && revision > 0) this.hint(revision);
    else this.hint();
  }

  private duplicate(): Redis | undefined {
    const { client } = this;
    const settings = {
      // The channel has its whole name already.
      keyPrefix: '',
      lazyConnect: true,
      autoResubscribe: false,
      disconnectTimeout: DISCONNECT_TIMEOUT_MS,
      enableOfflineQueue: false,
      // 'end' comes then, and with it another attempt, on another node of a cluster.
      retryStrategy: () => null,
    };
    if (!('nodes' in client)) return client.duplicate(settings);
    const nodes = client.nodes();
    return nodes[Math.floor(Math.random() * nodes.length)]?.duplicate(settings);
  }
}
