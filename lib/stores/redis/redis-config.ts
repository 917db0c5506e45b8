import type { Cluster, Redis } from 'ioredis';
import { type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import {
  decodeRecord,
  encodeDraft,
  HIGHEST_REVISION,
  MOST_HISTORY_BYTES,
  MOST_REVISIONS,
  readableAcks,
  readableRecords,
  shortened,
} from '../config-record.js';
import {
  type ConfigDraft,
  type ConfigRecord,
  type ConfigStore,
  type NodeAck,
  type NodeReport,
  type StoredConfig,
  type WrittenConfig,
} from '../config-store.js';
import { ConfigHints } from './config-hints.js';
import { defineConfigScripts, type ConfigScripts } from './config-scripts.js';
import { inTime } from './in-time.js';
import { RedisKeys, type ConfigKeys } from './keys.js';
import { wireOf } from './wire.js';

export interface RedisConfigSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  /** Nobody's request waits for it, so it is longer than that of a decision. Default: 2 s. */
  readonly timeoutMs?: number;
}

const DEFAULT_TIMEOUT_MS = 2000;

/** The configuration of a fleet, in Redis. */
export class RedisConfig implements ConfigStore {
  private readonly scripts: ConfigScripts;
  private readonly keys: ConfigKeys;
  private readonly subscriptions = new Set<ConfigHints>();
  /** A client's own prefix goes before keys, and not before channels. */
  private readonly channel: string;
  private connecting: Promise<void> | undefined;
  /** What the connection complains about while it is waited for. */
  private complaint: Error | undefined;
  private readonly heard = (error: Error): void => void (this.complaint = error);
  private isLeaving = false;
  /** Rejects those who wait for a connection when nobody needs it any more. */
  private giveUp: (error: Error) => void = () => {};
  private readonly left = new Promise<never>((_, reject) => (this.giveUp = reject));
  private closed = false;

  constructor(
    private readonly settings: RedisConfigSettings,
    private readonly clock: Pick<Clock, 'after' | 'every' | 'soon'>,
  ) {
    this.left.catch(() => {});
    this.scripts = defineConfigScripts(settings.client);
    this.keys = new RedisKeys(settings.prefix).config();
    this.channel = (settings.client.options.keyPrefix ?? '') + this.keys.channel;
  }

  async read(known = ''): Promise<StoredConfig> {
    const { config, orders: ordersKey } = this.keys;
    const [revisionText, now, isKnown, current, previous, orders] = await this.ask(() =>
      this.scripts.read(config, ordersKey, known),
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
    const [written, revision, nowMs] = await this.ask(() =>
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
    const texts: unknown = await this.ask(() =>
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
    const said = { ...report, ...(reason !== undefined && { reason: shortened(reason) }) };
    await this.ask(() =>
      this.scripts.acknowledge(acks, ackDeadlines, node, JSON.stringify(said), Math.ceil(ttlMs)),
    );
  }

  leave(): void {
    this.isLeaving = true;
    this.giveUp(new StoreUnavailableError('no connection'));
  }

  /** Without its deadline a node does not count; what it said goes with it. */
  async withdraw(node: string): Promise<void> {
    const { client } = this.settings;
    await this.ask(() =>
      Promise.all([client.zrem(this.keys.ackDeadlines, node), client.hdel(this.keys.acks, node)]),
    );
  }

  async acknowledgements(): Promise<NodeAck[]> {
    const { acks, ackDeadlines } = this.keys;
    return readableAcks(await this.ask(() => this.scripts.acks(acks, ackDeadlines)));
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
    this.settings.client.off('error', this.heard);
    for (const hints of this.subscriptions) hints.close();
    this.subscriptions.clear();
    return Promise.resolve();
  }

  /** Nothing is sent without a connection: it would be carried out later, unknown to the caller. */
  private async ask<T>(question: () => Promise<T>): Promise<T> {
    const { client, timeoutMs = DEFAULT_TIMEOUT_MS } = this.settings;
    if (this.closed) throw new StoreUnavailableError('it was closed');
    if (client.status !== 'ready') {
      if (this.isLeaving || client.status === 'end') {
        throw new StoreUnavailableError('no connection');
      }
      const connected = Promise.race([this.connected(), this.left]);
      await inTime(connected, timeoutMs, this.clock, () => this.complaint);
    }
    return inTime(question(), timeoutMs, this.clock);
  }

  /** One for all who wait: a connection that never comes must not gather listeners. */
  private connected(): Promise<void> {
    const { client } = this.settings;
    this.connecting ??= new Promise((resolve) => {
      client.on('error', this.heard);
      client.once('ready', () => {
        client.off('error', this.heard);
        this.connecting = this.complaint = undefined;
        resolve();
      });
      if (client.status === 'wait') client.connect().catch(() => {});
    });
    return this.connecting;
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
