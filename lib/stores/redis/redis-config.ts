import type { Cluster, Redis } from 'ioredis';
import { later, type Cancel, type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import {
  type ConfigDraft,
  type ConfigRecord,
  type ConfigStore,
  decodeRecord,
  encodeDraft,
  HIGHEST_REVISION,
  MOST_HISTORY_BYTES,
  MOST_REVISIONS,
  type NodeAck,
  type NodeReport,
  readableAcks,
  readableRecords,
  shortened,
  type StoredConfig,
  type WrittenConfig,
} from '../config-store.js';
import {
  ConnectionWait,
  DISCONNECT_TIMEOUT_MS,
  reconnectDelayMs,
  withTimeout,
} from './connection.js';
import { RedisKeys, type ConfigKeys } from './keys.js';
import { defineConfigScripts, type ConfigScripts } from './scripts.js';
import { watchSilence } from './silence.js';
import { wireOf } from './wire.js';

export interface RedisConfigSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  /** Nobody's request waits for it, so it is longer than that of a decision. Default: 2 s. */
  readonly timeoutMs?: number;
  /** For its connection. Default: the same. */
  readonly connectTimeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 2000;

/** The configuration of a fleet, in Redis. */
export class RedisConfig implements ConfigStore {
  private readonly scripts: ConfigScripts;
  private readonly keys: ConfigKeys;
  private readonly subscriptions = new Set<ConfigHints>();
  /** A client's own prefix goes before keys, and not before channels. */
  private readonly channel: string;
  private readonly wait: ConnectionWait;
  private isLeaving = false;
  /** Rejects the calls that wait for a connection when none needs it any more. */
  private giveUp: (error: Error) => void = () => {};
  private readonly left = new Promise<never>((_, reject) => (this.giveUp = reject));
  private closed = false;

  constructor(
    private readonly settings: RedisConfigSettings,
    private readonly clock: Pick<Clock, 'now' | 'after' | 'every' | 'soon'>,
  ) {
    this.left.catch(() => {});
    this.wait = new ConnectionWait(settings.client, 'kept');
    this.scripts = defineConfigScripts(settings.client);
    this.keys = new RedisKeys(settings.prefix).config();
    this.channel = (settings.client.options.keyPrefix ?? '') + this.keys.channel;
  }

  async read(known = ''): Promise<StoredConfig> {
    const { config, orders: ordersKey } = this.keys;
    const wire = wireOf(this.settings.client);
    const [revisionText, now, isKnown, current, previous, orders] = await this.run(() =>
      wire.together(() => this.scripts.read(config, ordersKey, known)),
    );
    const hasOrders = Number(orders) > 0 ? { hasOrders: true } : {};
    const revision = wholeOr0(revisionText);
    const nowMs = Number(now);
    if (Number(isKnown) === 1) return { revision, unchanged: true, nowMs, ...hasOrders };
    return {
      revision,
      unchanged: false,
      ...recordsOf(current, previous, revision),
      nowMs,
      ...hasOrders,
    };
  }

  async write(draft: ConfigDraft, expectedRevision: number, above = 0): Promise<WrittenConfig> {
    const { config, history } = this.keys;
    const body = encodeDraft(draft);
    const [written, revision, nowMs] = await this.run(() =>
      this.scripts.write(
        ...[config, history, expectedRevision, above, draft.id, body],
        ...[MOST_REVISIONS, MOST_HISTORY_BYTES, this.channel, HIGHEST_REVISION],
      ),
    );
    return { written: Number(written) === 1, revision: Number(revision), nowMs: Number(nowMs) };
  }

  async history(count: number): Promise<ConfigRecord[]> {
    if (count < 1) return [];
    const { client } = this.settings;
    const texts: unknown = await this.run(() =>
      client.lrange(this.keys.history, 0, Math.floor(count) - 1),
    );
    if (Array.isArray(texts) && texts.every((text) => typeof text === 'string')) {
      return readableRecords(texts);
    }
    throw wireOf(client).stray('lrange');
  }

  async acknowledge(report: NodeReport, ttlMs: number): Promise<void> {
    const { acks, ackDeadlines } = this.keys;
    const { node, reason } = report;
    const shortReport = { ...report, ...(reason !== undefined && { reason: shortened(reason) }) };
    await this.run(() =>
      this.scripts.acknowledge(
        acks,
        ackDeadlines,
        node,
        JSON.stringify(shortReport),
        Math.ceil(ttlMs),
      ),
    );
  }

  leave(): void {
    this.isLeaving = true;
    this.giveUp(new StoreUnavailableError('no connection'));
  }

  /** Without its deadline a node does not count; its report goes with it. */
  async withdraw(node: string): Promise<void> {
    const { client } = this.settings;
    await this.run(() =>
      Promise.all([client.zrem(this.keys.ackDeadlines, node), client.hdel(this.keys.acks, node)]),
    );
  }

  async acknowledgements(): Promise<NodeAck[]> {
    const { acks, ackDeadlines } = this.keys;
    return readableAcks(await this.run(() => this.scripts.acks(acks, ackDeadlines)));
  }

  subscribe(hint: (revision?: number) => void): Promise<() => void> {
    const hints = new ConfigHints(this.settings.client, this.channel, this.clock, hint);
    this.subscriptions.add(hints);
    return Promise.resolve(() => {
      this.subscriptions.delete(hints);
      hints.close();
    });
  }

  /** The client is not ours to close. */
  close(): Promise<void> {
    this.closed = true;
    this.wait.stop();
    for (const hints of this.subscriptions) hints.close();
    this.subscriptions.clear();
    return Promise.resolve();
  }

  /** Nothing is sent without a connection: it would be carried out later, unknown to the caller. */
  private async run<T>(command: () => Promise<T>): Promise<T> {
    const { client, timeoutMs = DEFAULT_TIMEOUT_MS } = this.settings;
    const { connectTimeoutMs = timeoutMs } = this.settings;
    if (this.closed) throw new StoreUnavailableError('it was closed');
    if (client.status !== 'ready') {
      if (this.isLeaving || client.status === 'end') {
        throw new StoreUnavailableError('no connection');
      }
      const connected = Promise.race([this.wait.whenReady(), this.left]);
      if (client.status === 'wait') client.connect().catch(() => {});
      await withTimeout(connected, connectTimeoutMs, this.clock, () => this.wait.lastError);
    }
    const { calls } = wireOf(client);
    return calls.take('config', this.clock, () => withTimeout(command(), timeoutMs, this.clock));
  }
}

type Records = Pick<StoredConfig, 'current' | 'previous' | 'damage'>;

function recordsOf(currentText: string, previousText: string, revision: number): Records {
  const before = readableRecords([previousText])[0];
  const previous = before && { previous: before };
  if (currentText === '' && revision === 0) return {};
  if (revision === 0) return { ...previous, damage: 'its revision is no number that was counted' };
  const current = decodeRecord(currentText, revision);
  return typeof current === 'string' ? { ...previous, damage: current } : { ...previous, current };
}

/** As config-write.lua reads it. */
function wholeOr0(text: string): number {
  const revision = Number(text);
  return Number.isInteger(revision) && revision > 0 && revision <= HIGHEST_REVISION ? revision : 0;
}

/** A connection that only listens carries no calls; so pings show that it is alive. */
const PING_MS = 1000;

/**
 * Listens for new revisions on a connection of its own: one that is subscribed can do nothing else.
 * Each subscription gives a hint that something may have been missed; so there is no gap between
 * reading and listening. On Redis Cluster every node passes on all messages, so any of them will do, and
 * after a loss another one is taken.
 */
class ConfigHints {
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
    connection.on('message', (_channel: string, message: string) => this.received(message));
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

  /** A message is only a hint: reading shows the stored revision; a number that is known saves the read. */
  private received(message: string): void {
    // A message that was on its way when the connection was closed.
    if (this.closed) return;
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
