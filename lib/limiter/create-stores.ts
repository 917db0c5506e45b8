import { type QuotaCall, type QuotaReply } from '../algorithms/quota/quota-protocol.js';
import { type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { StoreUnavailableError } from '../common/errors.js';
import { newIncarnation } from '../common/ids.js';
import { type AppTokens } from '../local/app-tokens.js';
import { type QuotaNodeEvents } from '../local/lease-calls.js';
import { MemoryQuota } from '../stores/memory/memory-quota.js';
import { RedisQuota } from '../stores/redis/redis-quota.js';
import { RedisStore, type RedisStoreSettings } from '../stores/redis/redis-store.js';
import { consumptionReport, tokenRequest, tokenResponse, type LimiterEvents } from './events.js';
import { type MemoryStoreOptions, type RedisStoreOptions } from './options.js';
import { type QuotaSettings } from './quota-options.js';
import { QuotaRegistry } from './quota-registry.js';

/** The memory store answers at once; no request ever waits for it. */
const MEMORY_TIMEOUT_MS = 1;

/** Callbacks of the shared store to its limiter. */
type StoreCallbacks = Pick<RedisStoreSettings, 'onSwitch' | 'onReady' | 'onRevision'>;

/** The store that a limiter shares with others; undefined if its options have none. */
export function createRemoteStore(
  store: MemoryStoreOptions | RedisStoreOptions,
  nodeId: string,
  clock: Clock,
  callbacks: StoreCallbacks,
): RedisStore | undefined {
  if (store.type === 'memory') return undefined;
  const { client, url, options, cluster, driver, prefix, maxBatch } = store;
  return new RedisStore(
    {
      connection: { client, url, options, cluster, driver },
      prefix,
      maxBatch,
      nodeId,
      decisionTimeoutMs: durationMs(store.decisionTimeout, 'store.decisionTimeout'),
      ...callbacks,
    },
    clock,
  );
}

/** The quotas of a limiter, on the ledger that its store keeps. */
export function createQuota(
  quota: QuotaSettings,
  store: MemoryStoreOptions | RedisStoreOptions,
  remote: RedisStore | undefined,
  nodeId: string,
  clock: Clock,
  events: LimiterEvents,
  watch: StoreWatch,
): QuotaRegistry {
  const { clusterId, figures } = quota;
  const nodeEvents = eventsOf(clock, events, watch);
  if (store.type === 'memory') {
    const ledger = new MemoryQuota(figures, clock);
    return new QuotaRegistry(
      quota,
      nodeId,
      newIncarnation(),
      MEMORY_TIMEOUT_MS,
      ledger,
      clock,
      nodeEvents,
    );
  }
  const timeoutMs = durationMs(store.decisionTimeout, 'store.decisionTimeout');
  const { client } = remote!;
  const { prefix } = store;
  const ledger = new RedisQuota({ client, prefix, clusterId, figures, timeoutMs }, clock);
  return new QuotaRegistry(quota, nodeId, newIncarnation(), timeoutMs, ledger, clock, nodeEvents);
}

/** Events of the local tier, as those of the limiter. */
function eventsOf(clock: Clock, events: LimiterEvents, watch: StoreWatch): QuotaNodeEvents {
  return {
    lost: (error) => watch.lost('quota', error),
    found: () => watch.found('quota'),
    mode: (app, mode) => events.emit('mode', { app, mode }),
    epoch: (epoch) => events.emit('epoch', { epoch }),
    overload: (overloaded) => events.emit('overload', { type: 'overload', overloaded }),
    adjust: (app) => events.emit('quota_adjust', adjustment(app)),
    revision: (revision) => events.emit('revision', { revision }),
    settled: (call, reply, apps) => emitSettled(apps, clock, events, call, reply),
  };
}

function adjustment({ name, share, guaranteed, burst, isOverloaded }: AppTokens) {
  const perSecond = isOverloaded ? Math.min(burst, guaranteed + share) : burst;
  return {
    type: 'quota_adjust',
    app: name,
    perSecond,
    guaranteed,
    overloaded: isOverloaded,
  } as const;
}

/** A few times a second; and only if there is a listener. */
function emitSettled(
  apps: readonly AppTokens[],
  clock: Clock,
  events: LimiterEvents,
  call: QuotaCall,
  reply: QuotaReply,
): void {
  const atMs = Math.round(clock.epochMs(clock.now()));
  for (const part of call.apps) {
    const { name } = apps[part.app]!;
    const answer = events.has('lease') && reply.apps.find((one) => one.app === part.app);
    if (answer) {
      const request = tokenRequest(call, part, name, atMs);
      events.emit('lease', { request, response: tokenResponse(part, answer, reply, name) });
    }
    const report = events.has('consumption') && consumptionReport(call, part, name, atMs);
    if (report) events.emit('consumption', report);
  }
}

/** The users of the store that can miss it. */
type StoreUser = 'policies' | 'quota';

/**
 * Emits once per switch of the store, by the first of its users to miss it. The store is back when it
 * answers all that had missed it.
 */
export class StoreWatch {
  private readonly missing = new Set<StoreUser>();
  private downSince = 0;

  constructor(
    private readonly clock: Pick<Clock, 'now'>,
    private readonly events: LimiterEvents,
  ) {}

  lost(by: StoreUser, error: unknown): void {
    const isFirst = this.missing.size === 0;
    this.missing.add(by);
    if (!isFirst) return;
    this.downSince = this.clock.now();
    this.events.emit('store', { state: 'down', reason: asUnavailable(error) });
  }

  found(by: StoreUser): void {
    if (!this.missing.delete(by) || this.missing.size > 0) return;
    const downMs = (this.clock.now() - this.downSince) / 1000;
    this.events.emit('store', { state: 'up', downMs });
  }
}

function asUnavailable(error: unknown): StoreUnavailableError {
  if (error instanceof StoreUnavailableError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new StoreUnavailableError(reason, { cause: error });
}
