import type { Cluster, Redis } from 'ioredis';
import { compileQuota, type QuotaFigures } from '../../algorithms/quota/quota-limits.js';
import { type QuotaCall, type QuotaReply } from '../../algorithms/quota/quota-protocol.js';
import { leaseName } from '../../algorithms/quota/quota-state.js';
import { statusOf, type QuotaStatus } from '../../algorithms/quota/quota-status.js';
import { type Clock } from '../../common/clock.js';
import { StoreTimeoutError, StoreUnavailableError } from '../../common/errors.js';
import {
  type NodesHeard,
  type QuotaLimitsStore,
  type QuotaMembers,
  type QuotaOverview,
  type QuotaStore,
} from '../quota-store.js';
import { ConnectionWait, withTimeout } from './connection.js';
import { RedisKeys, type QuotaKeys } from './keys.js';
import { AppNumbers, LimitsRecord, type Published } from './limits-record.js';
import { AppRegistry } from './node-registry.js';
import { consumptionFields, viewFields, viewOf } from './quota-view.js';
import { packCall, unpackReply, type AppNumbering } from './quota-wire.js';
import { defineScripts, type Scripts } from './scripts.js';
import { wireOf } from './wire.js';

export interface RedisQuotaSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  readonly clusterId: string;
  /** The limits of the cluster if it has none yet. */
  readonly figures: QuotaFigures;
  readonly timeoutMs: number;
  /** Tests only: the instant, in microseconds, that the script takes for now. */
  readonly scriptNow?: () => number;
}

/** A process that has just started waits for its connection, no longer than for an answer. */
const CONNECTING: readonly string[] = ['wait', 'connecting', 'connect'];

/**
 * The ledger of a cluster, in Redis. A call is sent once: a node without an answer may send it again
 * under the same number, and gets the answer of the first time if there was one.
 */
export class RedisQuota implements QuotaStore, QuotaLimitsStore, QuotaMembers, QuotaOverview {
  private readonly scripts: Scripts;
  private readonly keys: QuotaKeys;
  private readonly record: LimitsRecord;
  private readonly registry: AppRegistry;
  private readonly wait: ConnectionWait;

  constructor(
    private readonly settings: RedisQuotaSettings,
    private readonly clock: Pick<Clock, 'now' | 'after' | 'every' | 'soon'>,
  ) {
    this.scripts = defineScripts(settings.client);
    this.wait = new ConnectionWait(settings.client);
    this.keys = new RedisKeys(settings.prefix).quota(settings.clusterId);
    this.record = new LimitsRecord(this.keys.limits, this.scripts, settings.figures);
    this.registry = new AppRegistry(
      settings.client,
      this.scripts,
      this.keys.nodes,
      () => this.record.figures.apps.map(({ app }) => app),
      clock,
    );
  }

  settle(call: QuotaCall): Promise<QuotaReply> {
    return this.run(() => this.send(call)).catch((error: unknown) => {
      // The call itself may still be answered, and does not know of its deadline.
      if (error instanceof StoreTimeoutError)
        wireOf(this.settings.client).calls.failed('lease', error);
      throw error;
    });
  }

  /** The next call writes them first. */
  apply(figures: QuotaFigures, revision: number): void {
    this.record.apply(figures, revision);
  }

  /** Writes the limits, unless there are some of the same or of a later revision. */
  publish(figures: QuotaFigures, revision: number): Promise<Published> {
    this.record.apply(figures, revision);
    return this.run(() => this.record.sync());
  }

  join(member: string, apps: readonly string[] | undefined, heard: NodesHeard): void {
    this.registry.join(member, apps, heard);
  }

  serve(app: string): void {
    this.registry.serve(app);
  }

  leave(): Promise<void> {
    return withTimeout(this.registry.leave(), this.settings.timeoutMs, this.clock).catch(() => {
      // It no longer counts as soon as it has been silent for long enough.
    });
  }

  /** As of the last call that any node made. */
  status(): Promise<QuotaStatus> {
    return this.run(() => this.look());
  }

  /** How many processes may serve each app, whether they have asked for it lately or not. */
  processes(): Promise<Readonly<Record<string, number>>> {
    return this.run(() => this.registry.look());
  }

  private async look(): Promise<QuotaStatus> {
    const { client } = this.settings;
    const [recorded, consumed] = await Promise.all([
      client.hmget(this.keys.limits, 'revision', 'names', 'figures'),
      client.hgetall(this.keys.consumed),
    ]);
    if (!isList(recorded, 3, isText) || !isTexts(consumed)) throw wireOf(client).stray('hmget');
    const [revision, names, figures] = recorded;
    if (!names || !figures)
      return statusOf(viewOf(compileQuota(this.record.figures), [], consumed));
    const numbers = new AppNumbers(JSON.parse(names) as string[]);
    const fieldNames = viewFields(numbers.names.length);
    const fields = await client.hmgetBuffer(this.keys.ledger, ...fieldNames);
    if (!isList(fields, fieldNames.length, isPacked)) throw wireOf(client).stray('hmget');
    const known = JSON.parse(figures) as QuotaFigures;
    const limits = compileQuota(known, numbers.names, Number(revision));
    return statusOf(viewOf(limits, fields, consumed, numbers));
  }

  private async run<T>(command: () => Promise<T>): Promise<T> {
    const { client, timeoutMs } = this.settings;
    if (client.status === 'ready') return withTimeout(command(), timeoutMs, this.clock);
    if (!CONNECTING.includes(client.status)) throw new StoreUnavailableError('no connection');
    return withTimeout(this.wait.whenReady().then(command), timeoutMs, this.clock);
  }

  private async send(call: QuotaCall): Promise<QuotaReply> {
    const { record } = this;
    if (!record.isCurrent) await record.sync();
    // Limits that are not written with this call are written with the next one.
    else if (!record.isPublished) record.sync().catch(() => {});
    return this.lease(call).catch(async (error: unknown) => {
      if (!isAboutLimits(error)) throw error;
      await record.sync();
      return this.lease(call);
    });
  }

  private async lease(call: QuotaCall): Promise<QuotaReply> {
    // The record may be read again while the call is on its way.
    const numbers = numberingOf(this.record);
    const args = this.toArguments(call, numbers);
    const { calls } = wireOf(this.settings.client);
    const { reply, apps } = await calls.take('lease', this.clock, () =>
      this.scripts.lease(args, (bytes) => unpackReply(bytes, call, numbers)),
    );
    this.record.noticeApps(apps);
    return reply;
  }

  private toArguments(call: QuotaCall, numbers: AppNumbering): (string | Buffer)[] {
    const { ledger, deadlines, limits, consumed } = this.keys;
    const { scriptNow } = this.settings;
    const now = scriptNow === undefined ? '' : String(Math.floor(scriptNow()));
    return [
      ...[ledger, deadlines, limits, consumed],
      ...[leaseName(call), packCall(call, numbers), now],
      ...consumptionFields(call, this.record.names),
    ];
  }
}

function numberingOf({ names, numbers = new AppNumbers(names) }: LimitsRecord): AppNumbering {
  return {
    inLedger: (app) => numbers.of(names[app]),
    inProcess: (number) => names.indexOf(numbers.names[number]!),
    digest: numbers.digest,
  };
}

// These commands cannot name their call in the reply; so a reply must at least look like theirs.

function isList(reply: unknown, length: number, isOne: (item: unknown) => boolean): boolean {
  return Array.isArray(reply) && reply.length === length && reply.every(isOne);
}

function isTexts(reply: unknown): boolean {
  if (typeof reply !== 'object' || reply === null || Array.isArray(reply)) return false;
  return Object.values(reply).every(isText);
}

const isText = (item: unknown): boolean => item === null || typeof item === 'string';

const isPacked = (item: unknown): boolean =>
  item === null || (Buffer.isBuffer(item) && item.length % 8 === 0);

/** The ledger has no limits, or its apps have other numbers than in this process. */
function isAboutLimits(error: unknown): boolean {
  return error instanceof Error && /^(NOT_CONFIGURED|OTHER_APPS)/.test(error.message);
}
