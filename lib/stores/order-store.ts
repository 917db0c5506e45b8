import { isInstant, parsed } from './config-store.js';

/** Something that one process of every service that can is to do: warm its answers. */
export interface Order {
  readonly id: number;
  readonly kind: 'warm';
  /** Without one, all of them. */
  readonly resource?: string;
  readonly by: string;
  /** When, in milliseconds on the store's clock. */
  readonly atMs: number;
  /** The order is forgotten at that instant. */
  readonly untilMs: number;
}

/** The result of an order in one service. */
export interface OrderResult {
  readonly warmed?: readonly {
    readonly resource: string;
    readonly warmed: number;
    readonly failed: number;
  }[];
  readonly error?: string;
}

/** The process of a service that carries an order out. */
export interface OrderClaim {
  readonly node: string;
  /** Then another may take it. */
  readonly untilMs: number;
  /** The instant of the process's latest beat. */
  readonly atMs: number;
  readonly result: OrderResult | null;
}

export interface OpenOrder extends Order {
  /** By service. */
  readonly claims: ReadonlyMap<string, OrderClaim>;
}

export interface OpenOrders {
  readonly nowMs: number;
  readonly orders: readonly OpenOrder[];
}

/** The result of taking an order back: one that has begun goes on. */
export type CancelResult = 'cancelled' | 'unknown' | 'begun';

/** Where orders are left for the processes. What it does not answer in time is rejected. */
export interface OrderStore {
  /** The number of the order; undefined if there are as many as may be. */
  put(order: Pick<Order, 'kind' | 'resource' | 'by'>, atMs?: number): Promise<number | undefined>;
  cancel(id: number): Promise<CancelResult>;
  read(): Promise<OpenOrders>;
  /** False if it is not, or no longer, this node's. With a result it is done. */
  claim(
    id: number,
    service: string,
    node: string,
    leaseMs: number,
    result?: OrderResult,
  ): Promise<boolean>;
}

export const MOST_ORDERS = 16;
/** An order that no process could carry out for so long is not carried out any more. */
export const ORDER_KEPT_MS = 3_600_000;

/** Whether a field of the store is an order, a claim of one, or nothing of ours. */
export function readOrders(nowMs: number, fields: readonly string[]): OpenOrders {
  const orders = new Map<string, Order>();
  const claims = new Map<string, Map<string, OrderClaim>>();
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [name, value] = [fields[at]!, parsed(fields[at + 1]!)];
    const [, id, service] = /^(\d+)(?:\/([^]*))?$/.exec(name) ?? [];
    if (id === undefined || value === undefined) continue;
    if (service === undefined) {
      if (isOrder(value)) orders.set(id, value);
      continue;
    }
    if (!isClaim(value)) continue;
    const ofOrder = claims.get(id) ?? new Map<string, OrderClaim>();
    claims.set(id, ofOrder.set(service, value));
  }
  const open = [...orders].filter(([, { untilMs }]) => untilMs > nowMs);
  const joined = open.map(([id, order]) => ({ ...order, claims: claims.get(id) ?? new Map() }));
  return { nowMs, orders: joined.sort((a, b) => a.atMs - b.atMs || a.id - b.id) };
}

function isOrder(value: unknown): value is Order {
  const { id, atMs, untilMs, by, kind, resource } = (value ?? {}) as Partial<Order>;
  const isNamed = resource === undefined || typeof resource === 'string';
  return (
    Number.isFinite(id) &&
    [atMs, untilMs].every(isInstant) &&
    typeof by === 'string' &&
    kind === 'warm' &&
    isNamed
  );
}

function isClaim(value: unknown): value is OrderClaim {
  const { node, untilMs, atMs, result } = (value ?? {}) as Partial<OrderClaim>;
  return typeof node === 'string' && [untilMs, atMs].every(isInstant) && isResult(result);
}

/** A report; null while there is none. */
function isResult(value: unknown): value is OrderResult | null {
  if (typeof value !== 'object' || Array.isArray(value)) return false;
  const { warmed = [], error = '' } = (value ?? {}) as OrderResult;
  return typeof error === 'string' && Array.isArray(warmed) && warmed.every(isWarmed);
}

function isWarmed(value: unknown): boolean {
  const { resource, warmed, failed } = (value ?? {}) as Record<string, unknown>;
  return typeof resource === 'string' && [warmed, failed].every(Number.isFinite);
}
