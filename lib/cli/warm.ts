import { type NodeAck } from '../stores/config-store.js';
import { type OpenOrder, type OrderClaim } from '../stores/order-store.js';
import { RedisOrders } from '../stores/redis/redis-orders.js';
import { type Clock } from '../common/clock.js';
import { dateOption, readArguments, wholeOption, TEXT } from './arguments.js';
import {
  asJson,
  CommandFailedError,
  DONE,
  FAILED,
  UsageError,
  type Command,
  type Output,
} from './command.js';
import { unknownResource } from './degrade.js';
import { yourName } from './fleet-change.js';
import { STORE_HELP, STORE_OPTIONS, withStore, type OpenStore } from './store-options.js';
import { isoTime, table } from './table.js';

const TIMEOUT_MS = 5000;
const PAUSE_MS = 50;
const DEFAULT_TIMEOUT_S = 60;

export const warm: Command = {
  name: 'warm',
  takes: '[RESOURCE]',
  about: 'have one process of each service fill the caches with what its @Degrade({ warm }) lists',
  options: [
    '--at TIME         then, on the clock of Redis (default: now, and waits for the report)',
    '--cancel ID       take back an order whose time has not come',
    `--timeout SECONDS for how long it waits for the report (default: ${DEFAULT_TIMEOUT_S})`,
    '--by NAME         who does it, for logs and reports (default: your name)',
    ...STORE_HELP,
  ],
  more: ['weir status shows the orders of the last hour and their reports.'],
  run(args, output) {
    const options = {
      ...STORE_OPTIONS,
      at: TEXT,
      cancel: TEXT,
      timeout: TEXT,
      by: TEXT,
    } as const;
    const { values, words } = readArguments(args, options, [0, 1]);
    const at = dateOption('--at', values.at);
    const timeoutS = wholeOption('--timeout', values.timeout, 1) ?? DEFAULT_TIMEOUT_S;
    const [resource] = words;
    const cancelled = wholeOption('--cancel', values.cancel, 1);
    if (cancelled !== undefined) {
      if (resource !== undefined || at !== undefined) {
        throw new UsageError('--cancel takes neither RESOURCE nor --at.');
      }
      return withStore(values, (store) => takeBack(store, cancelled, values.json ?? false, output));
    }
    return withStore(values, async (store) => {
      const services = servicesFor(resource, await store.config.acknowledgements());
      await mustBeAhead(store, at);
      const orders = ordersOf(store);
      const by = values.by ?? yourName();
      const order = { kind: 'warm' as const, by, ...(resource !== undefined && { resource }) };
      const id = await orders.put(order, at?.getTime());
      if (id === undefined) throw new CommandFailedError(TOO_MANY);
      const isJson = values.json ?? false;
      if (at === undefined) {
        const report = await reportOn(orders, store.clock, id, services, timeoutS * 1000);
        return tell(report, isJson, output);
      }
      const told = { id, atMs: at.getTime(), services };
      if (isJson) output.log(asJson(told));
      else output.log(`warm order ${id} for ${isoTime(at.getTime())}: ${services.join(', ')}`);
      return DONE;
    });
  },
};

const TOO_MANY =
  '16 warm orders are open already: weir status shows them; they end after an hour, or by --cancel';

async function takeBack(
  store: OpenStore,
  id: number,
  isJson: boolean,
  output: Output,
): Promise<number> {
  // Orders are asked of a client that is connected.
  await store.config.read();
  const result = await ordersOf(store).cancel(id);
  switch (result) {
    case 'unknown':
      throw new CommandFailedError(
        `there is no warm order ${id}; weir status shows those of the last hour`,
      );
    case 'begun':
      throw new CommandFailedError(`warm order ${id} has begun: weir status shows its report`);
    case 'cancelled':
      output.log(isJson ? asJson({ id, cancelled: true }) : `warm order ${id} is taken back`);
      return DONE;
  }
}

/** On the client of a store that has answered already. */
export function ordersOf({ connection: { client }, prefix, clock }: OpenStore): RedisOrders {
  return new RedisOrders({ client, prefix, timeoutMs: TIMEOUT_MS }, clock);
}

async function mustBeAhead({ config }: OpenStore, at: Date | undefined): Promise<void> {
  const { nowMs } = await config.read();
  if (at === undefined || at.getTime() > nowMs) return;
  throw new CommandFailedError(
    `--at ${isoTime(at.getTime())} is past: the clock of Redis says ${isoTime(nowMs)}; leave it out for now`,
  );
}

/** The services that have something to warm. */
function servicesFor(resource: string | undefined, nodes: readonly NodeAck[]): string[] {
  const able = nodes.filter(({ warms }) => Array.isArray(warms) && warms.length > 0);
  const isMeant = ({ warms }: NodeAck) => resource === undefined || warms!.includes(resource);
  const services = new Set(able.filter(isMeant).map(({ service }) => service ?? 'default'));
  if (services.size > 0) return [...services].sort();
  const known = [...new Set(able.flatMap(({ warms }) => warms!.map(String)))].sort();
  const remedy =
    "@Degrade({ warm }) lists the questions of a route; 'warm' must be there, and a process run";
  if (resource !== undefined) throw unknownResource(resource, known, remedy);
  throw new CommandFailedError(`no running process has anything to warm\n${remedy}`);
}

interface ServiceReport {
  readonly service: string;
  readonly claim: OrderClaim | undefined;
}

async function reportOn(
  orders: RedisOrders,
  clock: Clock,
  id: number,
  services: readonly string[],
  timeoutMs: number,
): Promise<{ id: number; timeoutMs: number; services: ServiceReport[] }> {
  const until = clock.now() + timeoutMs * 1000;
  for (;;) {
    const order = (await orders.read()).orders.find((one) => one.id === id);
    const reports = services.map((service) => ({ service, claim: order?.claims.get(service) }));
    const isDone = reports.every(({ claim }) => (claim?.result ?? null) !== null);
    if (isDone || clock.now() >= until) return { id, timeoutMs, services: reports };
    await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
  }
}

function tell(
  report: Awaited<ReturnType<typeof reportOn>>,
  isJson: boolean,
  output: Output,
): number {
  const { id, timeoutMs, services } = report;
  if (isJson) {
    const told = services.map(({ service, claim }) => {
      return {
        service,
        node: claim?.node,
        ...claim?.result,
        done: (claim?.result ?? null) !== null,
      };
    });
    output.log(asJson({ id, services: told }));
  } else {
    output.log(`warm order ${id}`);
    output.log(
      table(
        WARM_HEAD,
        services.flatMap(({ service, claim }) => rowsOf(service, claim)),
      ),
    );
  }
  const silent = services.filter(({ claim }) => (claim?.result ?? null) === null);
  for (const { service, claim } of silent) {
    const who = claim === undefined ? 'no process has begun' : `${claim.node} is at it`;
    output.error(
      `no report of ${service} within ${timeoutMs / 1000} s: ${who}; weir status shows more`,
    );
  }
  const isWell = services.every(({ claim }) =>
    claim?.result?.warmed?.every((one) => one.failed === 0),
  );
  return isWell ? DONE : FAILED;
}

const WARM_HEAD = ['service', 'resource', 'warmed', 'failed', 'by'];

function rowsOf(service: string, claim: OrderClaim | undefined): unknown[][] {
  if (claim === undefined) return [[service, '(not begun)']];
  const { node, result } = claim;
  if (result === null) return [[service, '(at it)', undefined, undefined, node]];
  if (result.error !== undefined) return [[service, result.error, undefined, undefined, node]];
  return (result.warmed ?? []).map((one) => [service, one.resource, one.warmed, one.failed, node]);
}

export function tellOrders(orders: readonly OpenOrder[], output: Output): void {
  for (const { id, by, atMs, resource = 'all', claims } of orders) {
    output.log(`\nwarm order ${id} by ${by} at ${isoTime(atMs)}: ${resource}`);
    const rows = [...claims].flatMap(([service, claim]) => rowsOf(service, claim));
    if (rows.length > 0) output.log(table(WARM_HEAD, rows));
  }
}
