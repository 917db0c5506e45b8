import type { Cluster, Redis } from 'ioredis';
import { later, type Cancel, type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import { newIncarnation } from '../../common/ids.js';
import {
  markedText,
  type BoardEntry,
  type BoardNews,
  type BoardStore,
  type MarkedText,
} from '../board-store.js';
import { withTimeout } from './connection.js';
import { RedisKeys, type BoardKeys } from './keys.js';
import { connectionBeside } from './redis-shared-cache.js';
import { defineScripts, type Scripts } from './scripts.js';
import { wireOf } from './wire.js';

export interface RedisBoardSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
}

/** Nobody's request waits for it. */
const TIMEOUT_MS = 1000;
/** A connection for reads is closed when nobody has read for so long. */
const IDLE_MS = 60_000;
/** The list of nodes is written anew so often, in case the store has lost it. */
const LISTED_MICROS = 60_000_000;
/** A week and a day: the hours of the last week. */
const HISTORY_MS = 8 * 24 * 3_600_000;

/**
 * The board in Redis. A node's figures are a key of their own, spread over all slots of a cluster; they are written on
 * the connection of decisions, small as they are. Replies of up to 64 kB come by a second one, which is opened
 * when somebody reads: they must not stand before a decision.
 */
export class RedisBoard implements BoardStore {
  readonly isShared = true;
  private readonly names: RedisKeys;
  private readonly keys: BoardKeys;
  private readonly scripts: Scripts;
  private readonly mark = newIncarnation();
  private reader: Redis | Cluster | undefined;
  private closeReader: Cancel | undefined;
  private listedAt = -Infinity;
  private closed = false;

  constructor(
    private readonly settings: RedisBoardSettings,
    private readonly clock: Pick<Clock, 'now' | 'after' | 'every' | 'soon'>,
  ) {
    this.names = new RedisKeys(settings.prefix);
    this.keys = this.names.board();
    this.scripts = defineScripts(settings.client);
  }

  async write(node: string, text: string, ttlMs: number): Promise<BoardNews> {
    const asked = [this.keys.lead, this.keys.named('watch')];
    // A script that asks to lead would cost more than both.
    const [told] = await wireOf(this.settings.client).inOneWrite(() =>
      Promise.all([
        this.run((client) => client.mget(asked)),
        this.set(undefined, text, ttlMs, this.names.boardOf(node)),
      ]),
    );
    const now = this.clock.now();
    if (now - this.listedAt >= LISTED_MICROS) {
      await this.run((client) => client.hset(this.keys.nodes, node, '1'));
      this.listedAt = now;
    }
    const [leader, watch] = Array.isArray(told) ? told.map(textOf) : [];
    return {
      isWatched: watch !== undefined,
      isLedByAnother: leader !== undefined && leader !== this.mark,
    };
  }

  onOtherCall(listener: () => void): () => void {
    return wireOf(this.settings.client).onTogether(listener);
  }

  async remove(node: string): Promise<void> {
    this.listedAt = -Infinity;
    await this.run((client) => client.hdel(this.keys.nodes, node));
    await this.run((client) => client.del(this.names.boardOf(node)));
  }

  async nodes(): Promise<string[]> {
    return Object.keys(await this.hash(this.keys.nodes));
  }

  async read(nodes: readonly string[]): Promise<BoardEntry[]> {
    const reader = await this.openReader();
    const texts = await this.run(
      // On a cluster each key has a slot of its own, and one command takes one slot.
      (client) =>
        'nodes' in client
          ? Promise.all(nodes.map((node) => client.get(this.names.boardOf(node))))
          : client.mget(nodes.map((node) => this.names.boardOf(node))),
      reader,
    );
    return nodes.map((node, index) => ({ node, text: textOf(texts[index]) }));
  }

  lead(termMs: number): Promise<boolean> {
    return this.run(() => this.scripts.holdLease(this.keys.lead, this.mark, termMs));
  }

  async resign(): Promise<void> {
    await this.run(() => this.scripts.releaseLease(this.keys.lead, this.mark));
  }

  async get(name: string): Promise<string | undefined> {
    const reader = await this.openReader();
    return textOf(await this.run((client) => client.get(this.keys.named(name)), reader));
  }

  async peek(name: string): Promise<string | undefined> {
    return textOf(await this.run((client) => client.get(this.keys.named(name))));
  }

  async set(
    name: string | undefined,
    text: string,
    ttlMs: number,
    key = this.keys.named(name!),
  ): Promise<void> {
    const reply: unknown = await this.run((client) => client.set(key, text, 'PX', ttlMs));
    if (reply !== 'OK') throw wireOf(this.settings.client).stray('set');
  }

  async marked(name: string): Promise<MarkedText | undefined> {
    return markedText(await this.get(name));
  }

  swap(
    name: string,
    readMark: string | undefined,
    { mark, text }: MarkedText,
    ttlMs: number,
  ): Promise<boolean> {
    const key = this.keys.named(name);
    return this.run(() => this.scripts.swapText(key, readMark ?? '', mark, text, ttlMs));
  }

  entries(name: string): Promise<Readonly<Record<string, string>>> {
    return this.hash(this.keys.named(name));
  }

  async putEntry(name: string, slot: number, text: string, oldest?: number): Promise<void> {
    const key = this.keys.named(name);
    await this.run((client) => client.hset(key, String(slot), text));
    if (oldest === undefined) return;
    await this.run((client) => client.hdel(key, String(oldest - 1)));
    await this.run((client) => client.pexpire(key, HISTORY_MS));
  }

  async forgetEntries(name: string, slots: readonly string[]): Promise<void> {
    await this.run((client) => client.hdel(this.keys.named(name), ...slots));
  }

  close(): void {
    this.closed = true;
    this.closeReader?.();
    this.reader?.disconnect();
    this.reader = undefined;
  }

  private async hash(key: string): Promise<Readonly<Record<string, string>>> {
    const reader = await this.openReader();
    const fields: unknown = await this.run((client) => client.hgetall(key), reader);
    if (typeof fields !== 'object' || fields === null) throw wireOf(reader).stray('hgetall');
    const texts = Object.entries(fields).filter(([, text]) => typeof text === 'string');
    return Object.fromEntries(texts);
  }

  /** Nothing is sent without a connection: it would be carried out later, when it is no longer true. */
  private run<T>(
    command: (client: Redis | Cluster) => Promise<T>,
    client: Redis | Cluster = this.settings.client,
  ): Promise<T> {
    const { calls } = wireOf(this.settings.client);
    return calls.take('board', this.clock, async () => {
      if (this.closed || client.status !== 'ready')
        throw new StoreUnavailableError('no connection');
      return await withTimeout(command(client), TIMEOUT_MS, this.clock);
    });
  }

  private async openReader(): Promise<Redis | Cluster> {
    if (this.closed) throw new StoreUnavailableError('it was closed');
    this.closeReader?.();
    this.closeReader = later(this.clock, IDLE_MS, () => {
      this.reader?.disconnect();
      this.reader = undefined;
    });
    const reader = (this.reader ??= connectionBeside(this.settings.client));
    if (reader.status !== 'ready') {
      const ready = new Promise<void>((resolve) => reader.once('ready', () => resolve()));
      await withTimeout(ready, TIMEOUT_MS, this.clock);
    }
    return reader;
  }
}

/** A text, or nothing: readers of the board check what the text says. */
const textOf = (reply: unknown): string | undefined =>
  typeof reply === 'string' ? reply : undefined;
