import { type Redis } from 'ioredis';
import { RedisKeys } from '../../lib/stores/redis/keys.js';

const UNITS_PER_TOKEN = 1_000_000;
/** Where lease.lua keeps these figures in the state. */
const LEVEL = 1;
const OUTSTANDING = 2;
const EPOCH = 3;
const NODES = 9;
const STOCK = 13;
/** And where in the field of an app. */
const ROOM = 2;
const GRANTED = 7;

/** The ledger of a cluster in Redis. Amounts are tokens. */
export interface LedgerView {
  readonly level: number;
  readonly outstanding: number;
  readonly epoch: number;
  readonly nodes: number;
  /** Ever granted to nodes, less what came back. */
  readonly granted: number;
  /** The lowest of all accounts, those of the apps among them. */
  readonly lowest: number;
  /** The most that any bucket owes. */
  readonly debt: number;
}

export async function viewLedger(client: Redis, clusterId = 'chaos'): Promise<LedgerView> {
  const fields = await client.hgetallBuffer(new RedisKeys('weir').quota(clusterId).ledger);
  const state = doubles(fields.state ?? Buffer.alloc(0));
  const apps = Object.keys(fields)
    .filter((field) => field.length === 1)
    .map((field) => doubles(fields[field]));
  const levels = [state[LEVEL]!, ...state.slice(STOCK), ...apps.map((app) => app[ROOM]!)];
  const accounts = [
    ...state.filter((_, place) => place !== LEVEL && place < STOCK),
    ...apps.flatMap((app) => app.filter((_, place) => place !== ROOM)),
  ];
  return {
    level: state[LEVEL]! / UNITS_PER_TOKEN,
    outstanding: state[OUTSTANDING]! / UNITS_PER_TOKEN,
    epoch: state[EPOCH]!,
    nodes: state[NODES]!,
    granted: apps.reduce((sum, app) => sum + app[GRANTED]!, 0),
    lowest: Math.min(...accounts, ...doubles(fields.shares)),
    debt: Math.max(0, -Math.min(...levels)) / UNITS_PER_TOKEN,
  };
}

function doubles(bytes: Buffer = Buffer.alloc(0)): number[] {
  return Array.from({ length: bytes.length / 8 }, (_, i) => bytes.readDoubleLE(8 * i));
}
