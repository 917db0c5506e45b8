import {
  consumptionReport,
  tokenRequest,
  tokenResponse,
} from '../algorithms/quota/quota-messages.js';
import { type QuotaCall, type QuotaReply } from '../algorithms/quota/quota-protocol.js';
import { type Clock } from '../common/clock.js';
import { durationMs } from '../common/duration.js';
import { newIncarnation } from '../common/ids.js';
import { type AppTokens } from '../local/app-tokens.js';
import { type QuotaNodeEvents } from '../local/node-surroundings.js';
import { MemoryQuota } from '../stores/memory/memory-quota.js';
import { RedisQuota } from '../stores/redis/redis-quota.js';
import { type RedisStore } from '../stores/redis/redis-store.js';
import { type LimiterEvents } from './events.js';
import { type MemoryStoreOptions, type RedisStoreOptions } from './options.js';
import { QuotaRegistry } from './quota-registry.js';
import { type CheckedQuota } from './quota-options.js';
import { type StoreWatch } from './store-watch.js';

/** Memory answers at once; nobody ever waits for it. */
const MEMORY_TIMEOUT_MS = 1;

/** The quotas of a limiter, on the ledger that its store keeps. */
export function openQuota(
  quota: CheckedQuota,
  store: MemoryStoreOptions | RedisStoreOptions,
  remote: RedisStore | undefined,
  nodeId: string,
  clock: Clock,
  events: LimiterEvents,
  watch: StoreWatch,
): QuotaRegistry {
  const { clusterId, figures } = quota;
  const told = eventsOf(clock, events, watch);
  if (store.type === 'memory') {
    const ledger = new MemoryQuota(figures, clock);
    return new QuotaRegistry(quota, nodeId, newIncarnation(), MEMORY_TIMEOUT_MS, ledger, clock, told);
  }
  const timeoutMs = durationMs(store.decisionTimeout, 'store.decisionTimeout');
  const { client } = remote!;
  const { prefix } = store;
  const ledger = new RedisQuota({ client, prefix, clusterId, figures, timeoutMs }, clock);
  return new QuotaRegistry(quota, nodeId, newIncarnation(), timeoutMs, ledger, clock, told);
}

/** What the local tier tells, as the events of the limiter. */
function eventsOf(clock: Clock, events: LimiterEvents, watch: StoreWatch): QuotaNodeEvents {
  return {
    lost: (error) => watch.lost('quota', error),
    found: () => watch.found('quota'),
    mode: (app, mode) => events.emit('mode', { app, mode }),
    epoch: (epoch) => events.emit('epoch', { epoch }),
    overload: (overloaded) => events.emit('overload', { type: 'overload', overloaded }),
    adjust: (tank) => events.emit('quota_adjust', adjustment(tank)),
    revision: (revision) => events.emit('revision', { revision }),
    settled: (call, reply, tanks) => tellSettled(tanks, clock, events, call, reply),
  };
}

function adjustment({ name, share, guaranteed, burst, isOverloaded }: AppTokens) {
  const perSecond = isOverloaded ? Math.min(burst, guaranteed + share) : burst;
  return { type: 'quota_adjust', app, perSecond, guaranteed, overloaded: isOverloaded } as const;
}

/** A few times a second; and only for those who listen. */
function tellSettled(
  tanks: readonly AppTokens[],
  clock: Clock,
  events: LimiterEvents,
  call: QuotaCall,
  reply: QuotaReply,
): void {
  const atMs = Math.round(clock.epochMs(clock.now()));
  for (const asked of call.apps) {
    const { name } = tanks[asked.app]!;
    const answer = events.has('lease') && reply.apps.find((one) => one.app === asked.app);
    if (answer) {
      const request = tokenRequest(call, asked, name, atMs);
      events.emit('lease', { request, response: tokenResponse(asked, answer, reply, name) });
    }
    const report = events.has('consumption') && consumptionReport(call, asked, name, atMs);
    if (report) events.emit('consumption', report);
  }
}
