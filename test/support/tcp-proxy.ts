import { type Server, type Socket, connect, createServer } from 'node:net';
import { freePort } from './free-port.js';
import { closeAtEnd } from './processes.js';
import { ReplyQueue } from './reply-queue.js';
import { type RespMessage, RespSplitter } from './resp-splitter.js';

export interface ProxyStats {
  /** Connections accepted so far. */
  readonly connections: number;
  readonly openConnections: number;
  readonly bytesToServer: number;
  readonly bytesToClient: number;
  /** Whole replies that came from the server. */
  readonly replies: number;
}

interface Link {
  readonly client: Socket;
  readonly upstream: Socket;
  readonly queue: ReplyQueue;
  /** Nothing comes through any more, in either direction. */
  isDead: boolean;
}

type NextReply = 'pass' | 'drop' | 'cut' | 'double' | ((bytes: Buffer) => Buffer);

const HOST = '127.0.0.1';

/**
 * Stands between a client and a Redis server and spoils the replies. Whole replies are passed on,
 * never parts, so that one can be dropped or doubled without leaving half of another behind.
 */
export class TcpProxy {
  readonly host = HOST;
  private readonly links = new Set<Link>();
  private readonly counts = { connections: 0, bytesToServer: 0, bytesToClient: 0, replies: 0 };
  private readonly forget: () => void;
  private delayMs = 0;
  private held = false;
  private doubled = false;
  private mute = false;
  private isDeadEnd = false;
  private nextReply: NextReply = 'pass';

  private constructor(
    private readonly server: Server,
    readonly port: number,
    private targetPort: number,
  ) {
    server.on('connection', (client) => this.accept(client));
    this.forget = closeAtEnd(() => this.close());
  }

  /** @internal use {@link startProxy} */
  static async start(targetPort: number): Promise<TcpProxy> {
    for (;;) {
      const server = createServer({ noDelay: true });
      const port = await freePort();
      // A failed attempt means that another process was faster to take the port.
      if (await listen(server, port).catch(() => false))
        return new TcpProxy(server, port, targetPort);
    }
  }

  get url(): string {
    return `redis://${HOST}:${this.port}`;
  }

  get stats(): ProxyStats {
    return { ...this.counts, openConnections: this.links.size };
  }

  /** From now on a reply takes this much longer; 0 ends it. */
  delayReplies(ms: number): void {
    this.delayMs = ms;
  }

  /** The server hears everything, the client nothing, until {@link releaseReplies}. */
  holdReplies(): void {
    this.setHeld(true);
  }

  releaseReplies(): void {
    this.setHeld(false);
  }

  /** Each reply arrives twice, so that the client reads the second as the answer to what follows. */
  doubleReplies(on: boolean): void {
    this.doubled = on;
  }

  /** The next reply, on whichever connection, arrives twice. */
  doubleNextReply(): void {
    this.nextReply = 'double';
  }

  /** The next reply, on whichever connection, arrives as something else. */
  replaceNextReply(by: (bytes: Buffer) => Buffer): void {
    this.nextReply = by;
  }

  /**
   * All connections go dead without a word, as if the other side had lost its power: they stay open, and
   * nothing ever comes through them again. So do new ones until {@link revive}.
   */
  goDead(): void {
    this.isDeadEnd = true;
    for (const link of this.links) link.isDead = true;
  }

  /** New connections work; the dead ones stay dead. */
  revive(): void {
    this.isDeadEnd = false;
  }

  /** Messages that the server sends unasked, as those of a channel, are swallowed. */
  dropPushes(on: boolean): void {
    this.mute = on;
  }

  /** The next reply, on whichever connection, is swallowed; the connection stays open. */
  dropNextReply(): void {
    this.nextReply = 'drop';
  }

  /**
   * The next reply is lost together with its connection. This is how TCP loses one: the command
   * has run, and the client cannot know.
   */
  cutAtNextReply(): void {
    this.nextReply = 'cut';
  }

  /** Breaks all connections; new ones work. */
  drop(): void {
    for (const link of this.links) this.breakLink(link);
  }

  /** Breaks all connections and refuses new ones until {@link restore}. */
  async cut(): Promise<void> {
    const closed = this.server.listening
      ? new Promise<void>((resolve) => this.server.close(() => resolve()))
      : Promise.resolve();
    this.drop();
    await closed;
  }

  async restore(): Promise<void> {
    if (!this.server.listening) await listen(this.server, this.port);
  }

  /** Connections made from now on lead to another server. */
  redirect(targetPort: number): void {
    this.targetPort = targetPort;
  }

  async close(): Promise<void> {
    this.forget();
    await this.cut();
  }

  private accept(client: Socket): void {
    const upstream = connect({ host: HOST, port: this.targetPort, noDelay: true });
    const queue = new ReplyQueue(
      (bytes) => {
        this.counts.bytesToClient += bytes.length;
        client.write(bytes);
      },
      () => client.end(),
    );
    queue.hold = this.held;
    const link: Link = { client, upstream, queue, isDead: this.isDeadEnd };
    const splitter = new RespSplitter();
    this.counts.connections++;
    this.links.add(link);

    client.on('data', (chunk) => {
      if (link.isDead) return;
      this.counts.bytesToServer += chunk.length;
      upstream.write(chunk);
    });
    upstream.on('data', (chunk) => {
      if (link.isDead) return;
      for (const message of splitter.push(chunk)) this.pass(link, message);
    });
    upstream.on('close', () => {
      if (!link.isDead) queue.closeWhenDrained();
    });
    client.on('close', () => this.breakLink(link));
    // Broken connections are this class's purpose; 'close' follows each error.
    upstream.on('error', () => undefined);
    client.on('error', () => undefined);
  }

  private pass(link: Link, { bytes, kind }: RespMessage): void {
    if (kind === 'push') return this.mute ? undefined : link.queue.add(bytes, this.delayMs);
    this.counts.replies++;
    const fate = this.nextReply;
    this.nextReply = 'pass';
    switch (fate) {
      case 'drop':
        return;
      case 'cut':
        return this.breakLink(link);
      case 'pass':
        link.queue.add(bytes, this.delayMs);
        if (this.doubled) link.queue.add(bytes, this.delayMs);
        return;
      case 'double':
        link.queue.add(bytes, this.delayMs);
        return link.queue.add(bytes, this.delayMs);
      default:
        link.queue.add(fate(bytes), this.delayMs);
    }
  }

  private setHeld(held: boolean): void {
    this.held = held;
    for (const { queue } of this.links) queue.hold = held;
  }

  private breakLink(link: Link): void {
    this.links.delete(link);
    link.queue.discard();
    link.client.destroy();
    link.upstream.destroy();
  }
}

/** Starts a proxy before the Redis server on `targetPort`. */
export const startProxy = ({ targetPort }: { readonly targetPort: number }): Promise<TcpProxy> =>
  TcpProxy.start(targetPort);

const listen = (server: Server, port: number): Promise<true> =>
  new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, HOST, () => {
      server.off('error', reject);
      resolve(true);
    });
  });
