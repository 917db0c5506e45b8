import { type QuotaFigures } from '../algorithms/quota/quota-limits.js';
import { type QuotaStatus } from '../algorithms/quota/quota-status.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { limitsOf } from '../config/schema/limits-of.js';
import { windowMsOf } from '../limiter/bound-limit.js';
import { checkPolicy } from '../limiter/policy-options.js';
import { type ConfigRecord, type NodeAck } from '../stores/config-store.js';
import { decodeMerged, unreadableText } from '../observability/fleet/merged.js';
import { type Unreadable } from '../observability/fleet/snapshot.js';
import { type FleetState } from '../observability/state.js';
import { percent } from '../observability/figures.js';
import {
  causeOfApp,
  isShort,
  limitedKeysOf,
  why,
  type PolicyLimit,
} from '../observability/limited.js';
import { timeOf, verdict } from '../observability/verdict.js';
import { RedisBoard } from '../stores/redis/redis-board.js';
import { RedisQuota } from '../stores/redis/redis-quota.js';
import { RedisKeys } from '../stores/redis/keys.js';
import { readArguments, TEXT } from './arguments.js';
import { asJson, DONE, type Command, type Output } from './command.js';
import { processes } from './fleet-change.js';
import { heldResources, type HeldResource } from './degrade.js';
import { STORE_HELP, STORE_OPTIONS, withStore, type OpenStore } from './store-options.js';
import { documentIn, readStored } from './stored-config.js';
import { isoTime, table } from './table.js';
import { ordersOf, tellOrders } from './warm.js';

const TIMEOUT_MS = 5000;

export const status: Command = {
  name: 'status',
  takes: '',
  about: 'show the quota as it stands, who is limited, and which process is on which revision',
  options: ['--cluster ID      which cluster (default: the one that is configured)', ...STORE_HELP],
  run(args, output) {
    const options = { ...STORE_OPTIONS, cluster: TEXT } as const;
    const { values } = readArguments(args, options, [0, 0]);
    return withStore(values, async (store) => {
      const stored = await readStored(store.config);
      const nodes = await store.config.acknowledgements();
      const clusterId = values.cluster ?? documentIn(stored).cluster?.id ?? 'default';
      const { quota, processes } = await quotaStatus(store, clusterId);
      const { orders } = await ordersOf(store).read();
      const held = heldResources(stored);
      const found = await readFleet(store);
      const fleet = typeof found === 'string' ? null : found;
      if (values.json) {
        const revision = stored?.revision ?? 0;
        const waiting = stored?.staged ?? [];
        const shown = { revision, staged: waiting, nodes, held, clusterId };
        const told = { ...shown, quota: quota ?? null, processes: processes ?? null, fleet };
        const inMap = orders.map(({ claims, ...order }) => {
          return { ...order, claims: Object.fromEntries(claims) };
        });
        output.log(asJson({ ...told, orders: inMap }));
      } else {
        tellNodes(stored, nodes, output);
        tellHeld(held, output);
        tellOrders(orders, output);
        tellQuota({ clusterId, quota, processes: processes ?? {}, fleet }, output);
        if (typeof found === 'string') output.log(`\nnow: not known, ${unreadableText(found)}`);
        if (fleet !== null) tellFleet(fleet, documentIn(stored), output);
      }
      return DONE;
    });
  },
};

/** The figures that processes have written lately; null if they have not. */
async function readFleet({
  connection,
  prefix,
  clock,
}: OpenStore): Promise<FleetState | Unreadable | null> {
  const { client } = connection;
  const board = new RedisBoard({ client, prefix }, clock);
  try {
    const text = await board.peek('merged');
    return text === undefined ? null : decodeMerged(text);
  } finally {
    board.close();
  }
}

/** Callers that are denied, values in demand, degraded resources, and breakers that are not closed. */
function tellFleet(fleet: FleetState, document: ConfigDocument, output: Output): void {
  const apps = fleet.quota?.apps ?? [];
  const appWhy = new Map(apps.map((one) => [`app:${one.app}`, why(causeOfApp(one, fleet))]));
  const { text, why: cause, sinceMs } = verdict(fleet);
  const since = sinceMs === undefined ? '' : `\nsince: ${timeOf(sinceMs, fleet.atMs)}`;
  output.log(`\nnow: ${text}${cause === undefined ? '' : `\nwhy: ${cause}`}${since}`);
  const denied = fleet.series.filter((one) => one.denied > 0 && /^(?:app|policy):/.test(one.name));
  if (denied.length > 0) {
    const rows = denied.map(({ name, rate, denied: away }) => {
      return [name.replace(':', ' '), rate, away, percent(away / rate), appWhy.get(name)];
    });
    output.log(`\n${table(['limited', 'asked/s', 'denied/s', 'denied', 'why'], rows)}`);
  }
  const keys = limitedKeysOf(fleet, (policy) => limitIn(document, policy));
  if (keys.length > 0) {
    const rows = keys.map((one) => [one.who, one.policy, Math.round(one.denied), one.why]);
    output.log(`\n${table(['denied key', 'policy', 'denied in 1 min', 'why'], rows)}`);
  }
  const hot = (fleet.hotValues ?? []).map(({ policy, key, perPeriod }) => [policy, key, perPeriod]);
  if (hot.length > 0) output.log(`\n${table(['policy', 'hot value', 'tokens/period'], hot)}`);
  const resources = fleet.resources.map(({ resource, breaker, phase }) => {
    const levels = fleet.series.find(({ name }) => name === `resource:${resource}`)?.degraded;
    return [resource, breaker, phase, ...(levels ?? [0, 0, 0, 0])];
  });
  if (resources.length === 0) return;
  const head = ['resource', 'breaker', 'state', 'level 1/s', 'level 2/s', 'level 3/s', 'level 4/s'];
  output.log(`\n${table(head, resources)}`);
}

/** Undefined of a policy that is not in the document. */
function limitIn(document: ConfigDocument, name: string): PolicyLimit | undefined {
  const { policies } = limitsOf(document);
  if (!Object.hasOwn(policies, name)) return undefined;
  const { limits, defaultTier, failureMode } = checkPolicy(name, policies[name]!);
  const limit = limits.get(defaultTier)!;
  return { capacity: limit.capacity, windowMs: windowMsOf(limit), failureMode };
}

interface FleetQuota {
  readonly quota?: QuotaStatus;
  /** Number of processes that may serve each app. */
  readonly processes?: Readonly<Record<string, number>>;
}

/** Under the limits that the fleet has written; nothing if it has no quota. */
async function quotaStatus(store: OpenStore, clusterId: string): Promise<FleetQuota> {
  const { connection, prefix, clock } = store;
  const { client } = connection;
  const keys = new RedisKeys(prefix).quota(clusterId);
  const figures = await client.hget(keys.limits, 'figures');
  if (figures === null) return {};
  const settings = { client, prefix, clusterId, timeoutMs: TIMEOUT_MS };
  const ledger = new RedisQuota(
    { ...settings, figures: JSON.parse(figures) as QuotaFigures },
    clock,
  );
  const [quota, processes] = await Promise.all([ledger.status(), ledger.processes()]);
  return { quota, processes };
}

function tellNodes(
  holding: ConfigRecord | undefined,
  nodes: readonly NodeAck[],
  output: Output,
): void {
  const profile = documentIn(holding).profile ?? 'normal';
  output.log(
    holding === undefined
      ? 'configuration: nothing is stored'
      : `configuration: revision ${holding.revision}, profile ${profile}`,
  );
  for (const { id, by, effectiveAtMs } of holding?.staged ?? []) {
    output.log(`update ${id} by ${by} takes effect at ${isoTime(effectiveAtMs)}`);
  }
  if (nodes.length === 0) return output.log('no process has said which revision it is on');
  const behind = nodes.filter(({ revision }) => revision !== (holding?.revision ?? 0)).length;
  output.log(
    behind === 0
      ? `${nodes.length === 1 ? '1 process is' : `all ${nodes.length} processes are`} on it`
      : `${behind} of ${processes(nodes.length)} ${behind === 1 ? 'is' : 'are'} not on it`,
  );
  const rows = nodes.map(({ node, revision, status, reason, atMs }) => {
    return [node, revision, status, isoTime(atMs), reason];
  });
  output.log(`\n${table(['node', 'revision', 'status', 'heard of', 'why'], rows)}`);
}

function tellHeld(held: readonly HeldResource[], output: Output): void {
  if (held.length === 0) return;
  const rows = held.map(({ resource, mode, level, untilMs }) => {
    return [resource, mode, level, untilMs === undefined ? undefined : isoTime(untilMs)];
  });
  output.log(`\n${table(['resource', 'held as', 'level', 'until'], rows)}`);
}

interface ClusterSeen extends FleetQuota {
  readonly clusterId: string;
  readonly fleet: FleetState | null;
}

/** The ledger knows how much is asked for; whether anybody is denied for it, only the processes know. */
export function overloadText(id: string, overloaded: boolean, fleet: FleetState | null): string {
  if (!overloaded) return 'not overloaded';
  const { quota } = fleet ?? {};
  if (fleet === null || quota === undefined || fleet.cluster !== id) return 'OVERLOADED';
  return isShort({ ...fleet, quota: { ...quota, overloaded } })
    ? 'OVERLOADED'
    : 'not short, though apps ask for more than their ceilings';
}

/** Processes are those that have asked for tokens within a lease time: idle ones do not count. */
function tellQuota(
  { clusterId, quota, processes: processesOf = {}, fleet }: ClusterSeen,
  output: Output,
): void {
  if (quota === undefined) return output.log(`\ncluster ${clusterId}: no quota`);
  const { capacity, level, depth, outstanding, demand, nodes, overloaded, asOfMs } = quota;
  output.log(
    `\ncluster ${clusterId}: ${overloadText(clusterId, overloaded, fleet)}, as of ${isoTime(asOfMs)}\n` +
      table(
        ['capacity/s', 'demand/s', 'tokens', 'of', 'leased', 'asking'],
        [[capacity, demand, level, depth, outstanding, nodes]],
      ),
  );
  const rows = Object.entries(quota.apps).map(([app, one]) => {
    return [
      app,
      one.guaranteed,
      one.burst,
      one.demand,
      one.granted,
      one.used,
      one.outstanding,
      processesOf[app] ?? 0,
      one.nodes,
    ];
  });
  const head = ['app', 'guaranteed', 'burst', 'demand/s', 'granted', 'used', 'leased'];
  output.log(`\n${table([...head, 'processes', 'asking'], rows)}`);
}
