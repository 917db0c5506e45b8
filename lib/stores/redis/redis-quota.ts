import type { Cluster, Redis } from 'ioredis';
import {
  compileQuota,
  leaseName,
  statusOf,
  type QuotaCall,
  type QuotaFigures,
  type QuotaReply,
  type QuotaStatus,
} from '../../algorithms/quota/index.js';
import { type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import { type QuotaOverview, type QuotaStore } from '../quota-store.js';
import { inTime } from './in-time.js';
import { RedisKeys, type QuotaKeys } from './keys.js';
import { consumptionFields, viewFields, viewOf } from './quota-view.js';
import { packCall, packLimits, unpackReply } from './quota-wire.js';
import { defineScripts, type Scripts } from './scripts.js';

export interface RedisQuotaSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  readonly clusterId: string;
  /** What the cluster is given if it has no limits yet. */
  readonly figures: QuotaFigures;
  readonly timeoutMs: number;
  /** Tests only: the instant, in microseconds, that the script takes for now. */
  readonly scriptNow?: () => number;
}

/** A process that has just started is worth the wait, which is no longer than for an answer. */
const CONNECTING: readonly string[] = ['wait', 'connecting', 'connect'];

/** Whether limits were written, and the revision that holds now. */
export interface Published {
  readonly written: boolean;
  readonly revision: number;
}

/**
 * The ledger of a cluster, in Redis. It sends a call once: whoever gets no answer may send it again
 * under the same number, and learns what became of it.
 */
export class RedisQuota implements QuotaStore, QuotaOverview {
  private readonly scripts: Scripts;
  private readonly keys: QuotaKeys;
  private connecting: Promise<void> | undefined;
  /** Of the limits that the last reply was settled under; 0 before the first. */
  revision = 0;

  constructor(
    private readonly settings: RedisQuotaSettings,
    private readonly clock: Pick<Clock, 'after'>,
  ) {
    this.scripts = defineScripts(settings.client);
    this.keys = new RedisKeys(settings.prefix).quota(settings.clusterId);
  }

  settle(call: QuotaCall): Promise<QuotaReply> {
    return this.ask(() => this.send(call));
  }

  /** Replaces the limits of that revision, 0 if there should be none, unless somebody else did. */
  publish(figures: QuotaFigures, replaces: number): Promise<Published> {
    return this.ask(() => this.write(figures, replaces));
  }

  /** As of the last call that any node made. */
  status(): Promise<QuotaStatus> {
    return this.ask(() => this.look());
  }

  private async look(): Promise<QuotaStatus> {
    const { client } = this.settings;
    const [fields, figures, consumed] = await Promise.all([
      client.hmgetBuffer(this.keys.ledger, ...viewFields(this.settings.figures.apps.length)),
      client.hget(this.keys.limits, 'figures'),
      client.hgetall(this.keys.consumed),
    ]);
    const known = figures === null ? this.settings.figures : (JSON.parse(figures) as QuotaFigures);
    return statusOf(viewOf(compileQuota(known), fields, consumed));
  }

  private async ask<T>(question: () => Promise<T>): Promise<T> {
    const { client, timeoutMs } = this.settings;
    if (client.status === 'ready') return inTime(question(), timeoutMs, this.clock);
    if (!CONNECTING.includes(client.status)) throw new StoreUnavailableError('no connection');
    return inTime(this.connected().then(question), timeoutMs, this.clock);
  }

  /** One for all who wait: a connection that never comes must not gather listeners. */
  private connected(): Promise<void> {
    this.connecting ??= new Promise((resolve) => {
      this.settings.client.once('ready', () => {
        this.connecting = undefined;
        resolve();
      });
    });
    return this.connecting;
  }

  private async send(call: QuotaCall): Promise<QuotaReply> {
    const args = this.toArguments(call);
    const bytes = await this.scripts.lease(args).catch(async (error: unknown) => {
      if (!hasNoLimits(error)) throw error;
      await this.write(this.settings.figures, 0);
      return this.scripts.lease(args);
    });
    const { revision, reply } = unpackReply(bytes);
    this.revision = revision;
    return reply;
  }

  private async write(figures: QuotaFigures, replaces: number): Promise<Published> {
    const packed = packLimits(compileQuota(figures));
    const args = [this.keys.limits, replaces, JSON.stringify(figures), packed];
    const [written, revision] = await this.scripts.seedLimits(args);
    return { written: written === 1, revision };
  }

  private toArguments(call: QuotaCall): (string | Buffer)[] {
    const { ledger, deadlines, limits, consumed } = this.keys;
    const { figures, scriptNow } = this.settings;
    const names = figures.apps.map(({ app }) => app);
    const now = scriptNow === undefined ? '' : String(Math.floor(scriptNow()));
    return [
      ...[ledger, deadlines, limits, consumed],
      ...[leaseName(call), packCall(call, names.length), now],
      ...consumptionFields(call, names),
    ];
  }
}

function hasNoLimits(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOT_CONFIGURED');
}
