import { InProcessRedis } from 'nestjs-weir/testing';
import { NODES, startNode, type ShopNode } from './shop-node.js';
import { type Stage } from './stage.js';
import { Traffic } from './traffic.js';

/** A shop that runs. */
export interface Shop {
  /** Of the node that shows the page. */
  readonly address: string;
  stop(): Promise<void>;
}

/**
 * Three nodes in this process, on a Redis in this process: leases, outages and figures of the fleet are what they are with a
 * server. Undefined if the port is taken.
 */
export async function startInOneProcess(port: number): Promise<Shop | undefined> {
  const redis = new InProcessRedis();
  const traffic = new Traffic();
  const nodes: ShopNode[] = [];
  const addresses: string[] = [];
  let comesBack: NodeJS.Timeout | undefined;
  const stage: Stage = {
    raise: (...args) => traffic.raise(...args),
    takeStoreAway: (seconds) => {
      redis.goAway();
      clearTimeout(comesBack);
      comesBack = setTimeout(() => redis.comeBack(), seconds * 1000).unref();
    },
    slowDatabase: (seconds) => nodes.forEach(({ catalog }) => catalog.slowFor(seconds)),
  };
  const stop = async (): Promise<void> => {
    traffic.stop();
    await Promise.all(nodes.map(({ app }) => app.close()));
  };
  for (const [index, nodeId] of NODES.entries()) {
    // All three share one event loop with their callers: what is late here is the loop.
    const store = redis.store({ decisionTimeout: '1s' });
    const at = { nodeId, port: index === 0 ? port : 0 };
    const node = await startNode({ ...at, store, stage, addresses });
    if (node.address === undefined) {
      await stop();
      return undefined;
    }
    nodes.push(node);
    addresses.push(node.address);
  }
  traffic.start(addresses);
  return { address: addresses[0]!, stop };
}
