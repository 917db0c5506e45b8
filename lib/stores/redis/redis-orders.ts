import type { Cluster, Redis } from 'ioredis';
import { type Clock } from '../../common/clock.js';
import { StoreUnavailableError } from '../../common/errors.js';
import {
  MOST_ORDERS,
  ORDER_KEPT_MS,
  readOrders,
  type CancelResult,
  type OpenOrders,
  type Order,
  type OrderResult,
  type OrderStore,
} from '../order-store.js';
import { scriptSource, type ScriptArgument } from './scripts.js';
import { withTimeout } from './connection.js';
import { RedisKeys, type ConfigKeys } from './keys.js';
import { wireOf } from './wire.js';

export interface RedisOrdersSettings {
  readonly client: Redis | Cluster;
  readonly prefix: string;
  readonly timeoutMs: number;
}

/** As order-cancel.lua numbers them. */
const CANCEL_RESULTS: readonly CancelResult[] = ['unknown', 'cancelled', 'begun'];

type OrderScript = (...args: ScriptArgument[]) => Promise<readonly unknown[]>;

/** Orders in Redis, beside the configuration, whose channel announces them. */
export class RedisOrders implements OrderStore {
  private readonly keys: ConfigKeys;
  private readonly channel: string;
  private readonly putScript: OrderScript;
  private readonly claimScript: OrderScript;
  private readonly readScript: OrderScript;
  private readonly cancelScript: OrderScript;

  constructor(
    private readonly settings: RedisOrdersSettings,
    private readonly clock: Pick<Clock, 'after' | 'soon'>,
  ) {
    const { client, prefix } = settings;
    this.keys = new RedisKeys(prefix).config();
    this.channel = (client.options.keyPrefix ?? '') + this.keys.channel;
    this.putScript = this.define('weirOrderPut', 'order-put');
    this.claimScript = this.define('weirOrderClaim', 'order-claim');
    this.readScript = this.define('weirOrdersRead', 'orders-read');
    this.cancelScript = this.define('weirOrderCancel', 'order-cancel');
  }

  async put(order: Pick<Order, 'kind' | 'resource' | 'by'>, atMs = 0): Promise<number | undefined> {
    const limits = [atMs, ORDER_KEPT_MS, MOST_ORDERS, this.channel];
    const [id] = await this.putScript(JSON.stringify(order), ...limits);
    return Number(id) > 0 ? Number(id) : undefined;
  }

  async cancel(id: number): Promise<CancelResult> {
    const [result] = await this.cancelScript(id);
    return CANCEL_RESULTS[Number(result)] ?? 'unknown';
  }

  async read(): Promise<OpenOrders> {
    const [nowMs, ...fields] = await this.readScript();
    return readOrders(Number(nowMs), fields.map(String));
  }

  async claim(
    id: number,
    service: string,
    node: string,
    leaseMs: number,
    result?: OrderResult,
  ): Promise<boolean> {
    const text = JSON.stringify(result ?? null);
    const [isOurs] = await this.claimScript(id, service, JSON.stringify(node), leaseMs, text);
    return Number(isOurs) === 1;
  }

  private define(name: string, script: string): OrderScript {
    const { client, timeoutMs } = this.settings;
    client.defineCommand(name, { lua: scriptSource(script), numberOfKeys: 1 });
    const commands = client as unknown as Record<
      string,
      (args: ScriptArgument[]) => Promise<unknown>
    >;
    const { orders } = this.keys;
    return (...args) => {
      if (client.status !== 'ready') {
        return Promise.reject(new StoreUnavailableError('no connection'));
      }
      const send = (call: number) => commands[name]!([orders, ...args, call]);
      return withTimeout(wireOf(client).call(script, send), timeoutMs, this.clock);
    };
  }
}
