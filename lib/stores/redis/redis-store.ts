import { AlgorithmCode, bucketLimit } from '../../algorithms/limit.js';
import { type Cancel, type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import {
  CallKind,
  type RemoteStore,
  type SharedLimit,
  type StoreCall,
  type StoreSwitch,
} from '../remote-store.js';
import { figuresOf, type Batch } from './batch.js';
import { connectMasters, keepMasters } from './cluster-masters.js';
import {
  connectRedis,
  ConnectionWait,
  withTimeout,
  type RedisConnection,
  type RedisConnectionSettings,
} from './connection.js';
import { RedisKeys, SHARDS } from './keys.js';
import { Lane, type LaneLink } from './lane.js';
import { NodeRegistry } from './node-registry.js';
import { defineScripts, type Scripts } from './scripts.js';
import { watchSilence } from './silence.js';
import { splitCall } from './split-call.js';
import { newCallNumber, wireOf } from './wire.js';
import { type CallTimes } from '../call-times.js';

export interface RedisStoreSettings {
  readonly connection: RedisConnectionSettings;
  readonly prefix: string;
  readonly decisionTimeoutMs: number;
  readonly maxBatch: number;
  readonly nodeId: string;
  readonly onSwitch: (event: StoreSwitch) => void;
  /** Called whenever a connection has been made. */
  readonly onReady?: () => void;
  /** Called whenever a bucket turns out to have limits of a later revision than the call had. */
  readonly onRevision?: (revision: number) => void;
  /** Tests only: the instant, in microseconds, that the scripts take for now. */
  readonly scriptNow?: () => number;
}

/** How the connections to a shared store fared so far. */
export interface StoreStats {
  /** Replies that answered another call, or none: nothing of them was counted. */
  readonly strayReplies: number;
  /** Connections that were given up because they had been silent for a second, with calls on them. */
  readonly silences: number;
  /** Processes that share the store, as far as this one knows; 1 before it has heard of any. */
  readonly nodes: number;
}

/** The store that a fleet shares, in Redis: one server, Sentinel or Redis Cluster. */
export class RedisStore implements RemoteStore, LaneLink {
  readonly timeoutMs: number;
  readonly maxBatch: number;
  readonly calls: CallTimes;
  private readonly connection: RedisConnection;
  private readonly wait: ConnectionWait;
  private readonly names: RedisKeys;
  private readonly scripts: Scripts;
  private readonly registry: NodeRegistry;
  private readonly lanes: readonly Lane[];
  private readonly openLanes = new Set<Lane>();
  private connectedOnce = false;
  private downSince = 0;
  private closed = false;
  private isSilent = false;
  private readonly stopWatch: Cancel | undefined;
  private readonly stopKeeping: Cancel | undefined;
  private readonly onReady = (): void => {
    this.connectedOnce = true;
    connectMasters(this.connection.client);
    for (const lane of this.lanes) lane.hint();
    this.settings.onReady?.();
  };

  constructor(
    private readonly settings: RedisStoreSettings,
    private readonly clock: Clock,
  ) {
    this.timeoutMs = settings.decisionTimeoutMs;
    this.maxBatch = settings.maxBatch;
    this.names = new RedisKeys(settings.prefix);
    this.connection = connectRedis(settings.connection, () => clock.random());
    const { client, isCluster, owned } = this.connection;
    this.wait = new ConnectionWait(client);
    this.calls = wireOf(client).calls;
    this.stopWatch = owned ? watchSilence(client, clock) : undefined;
    this.scripts = defineScripts(client);
    this.registry = new NodeRegistry(this.scripts, this.names.nodes(), settings.nodeId, clock);
    const lanes = isCluster ? SHARDS : 1;
    this.lanes = Array.from({ length: lanes }, (_, shard) => {
      return new Lane(shard, this.names, this, clock);
    });
    this.connectedOnce = client.status === 'ready';
    client.on('ready', this.onReady);
    if ('nodes' in client) {
      this.stopKeeping = keepMasters(client, owned, clock, () => {
        if (client.status === 'ready' && !this.closed) this.onReady();
      });
    }
    if (client.status === 'wait') client.connect().catch(() => {});
  }

  /** The connection, for other users of the same Redis. */
  get client(): RedisConnection['client'] {
    return this.connection.client;
  }

  get prefix(): string {
    return this.settings.prefix;
  }

  get nodes(): number {
    return this.registry.count;
  }

  countedNodes(): number {
    const { registry } = this;
    if (!this.closed && this.state() === 'ready') registry.beatIfDue();
    return registry.isKnown ? registry.count : 0;
  }

  stats(): StoreStats {
    const { strayReplies, silences } = wireOf(this.client);
    return { strayReplies, silences, nodes: this.nodes };
  }

  submit(call: StoreCall): void {
    const isLate = this.closed && (call.kind === CallKind.Take || call.kind === CallKind.Peek);
    if (isLate || this.isSilent) return call.failed(CLOSED);
    if (this.lanes.length === 1) return this.lanes[0]!.submit(call);
    if (call.kind === CallKind.Lease) {
      return this.lanes[this.names.shardOf(call.key)]!.submit(call);
    }
    for (const [shard, part] of splitCall(call, (key) => this.names.shardOf(key), this)) {
      this.lanes[shard]!.submit(part);
    }
  }

  flush(): void {
    for (const lane of this.lanes) lane.flush();
  }

  async reset(limit: SharedLimit, key: string): Promise<void> {
    if (this.state() !== 'ready') throw new StoreUnavailableError('no connection');
    // Calls that were submitted before go before.
    this.flush();
    const { names } = this;
    const [bucket, reset] = [names.bucket(limit, key), names.reset(limit, key)];
    const forgotten = this.scripts.forgetBucket(bucket, reset, this.now(), limit.figures.ttlMs);
    await withTimeout(forgotten, this.timeoutMs, this.clock);
  }

  async ready(timeoutMs: number): Promise<void> {
    if (this.connection.client.status === 'ready') return;
    await withTimeout(this.wait.whenReady(), timeoutMs, this.clock, () => this.lastError());
  }

  /** `others` send their last calls on the same connection, and have the same deadline. */
  async close(others?: Promise<void>): Promise<void> {
    if (this.closed) return;
    this.closed = true;
    await this.lastCalls(others);
    this.isSilent = true;
    for (const lane of this.lanes) lane.stop(CLOSED);
    this.stopWatch?.();
    this.stopKeeping?.();
    this.connection.client.off('ready', this.onReady);
    if (this.connection.owned) this.connection.client.disconnect();
  }

  /** Tokens given back at the end still have to arrive; but closing does not wait long for that. */
  private async lastCalls(others: Promise<void> | undefined): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, this.timeoutMs)));
    await Promise.race([Promise.all([this.drain(), others]), late]);
    clearTimeout(timer);
  }

  private async drain(): Promise<void> {
    // Calls on their way may bring tokens for callers that are gone: then they go back.
    for (let round = 0; round < 2 && this.state() === 'ready'; round++) {
      await Promise.all(this.lanes.map((lane) => lane.drain()));
    }
  }

  // For the lanes.

  lastError(): Error | undefined {
    return this.connection.lastError;
  }

  state(): 'ready' | 'connecting' | 'lost' {
    if (this.connection.client.status === 'ready') return 'ready';
    return this.connectedOnce ? 'lost' : 'connecting';
  }

  send(batch: Batch): Promise<readonly number[]> {
    this.registry.beatIfDue();
    const args = batch.toArguments(this.now());
    return this.scripts.buckets(args, (reply) => batch.isAnsweredBy(reply));
  }

  /** For scripts: '' stands for Redis' own clock. */
  private now(): string {
    const { scriptNow } = this.settings;
    return scriptNow === undefined ? '' : String(scriptNow());
  }

  /** Does what decisions need: a script, and a write. A ping alone would prove nothing to them. */
  async probe(shard: number): Promise<void> {
    if (this.state() !== 'ready') throw new StoreUnavailableError('no connection');
    const number = newCallNumber();
    const plan = `[1,1,${number}]`;
    const args = [1, this.names.probe(shard), '', plan, '', ...figuresOf(PROBE_LIMIT, 0)];
    const answer = this.scripts.buckets(args, (reply) => reply.at(-1) === number);
    await withTimeout(answer, this.timeoutMs, this.clock);
  }

  laterRevision(revision: number): void {
    this.settings.onRevision?.(revision);
  }

  laneOpened(lane: Lane, reason: StoreUnavailableError): void {
    this.openLanes.add(lane);
    if (this.openLanes.size > 1) return;
    this.downSince = this.clock.now();
    this.settings.onSwitch({ state: 'down', reason });
  }

  /** Whole again only when the last of the lanes is. */
  laneClosed(lane: Lane): void {
    this.openLanes.delete(lane);
    if (this.openLanes.size > 0) return;
    this.settings.onSwitch({ state: 'up', downMs: (this.clock.now() - this.downSince) / 1000 });
  }
}

const CLOSED = new StoreUnavailableError('it was closed');

/** Always allowed, so that a probe writes. */
const PROBE_LIMIT = bucketLimit(AlgorithmCode.TokenBucket, 1000, 1, 1000);
