import 'reflect-metadata';
import { portFrom } from '../support/listen.js';
import { startNode, type ShopNode } from './shop-node.js';
import { stageOver } from './stage.js';
import { type Order, type Told } from './three-processes.js';

const tell = (told: Told): void => void process.send!(told);

// Ctrl-C in a terminal, and its end, are told to all processes; the one that began this one ends it.
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
let node: ShopNode | undefined;
// It ends when it is alone, also while it starts.
process.once('disconnect', () => (node === undefined ? process.exit() : void node.app.close()));
const { NODE_ID: nodeId, REDIS_URL: url, PORT: port } = process.env;
// Three nodes, Redis and their callers share one machine: what is late here is the machine.
const store = { type: 'redis', url: url!, decisionTimeout: '500ms' } as const;
const addresses: string[] = [];
const at = { nodeId: nodeId!, port: portFrom(port) };
node = await startNode({ ...at, store, addresses, stage: stageOver(tell) });
const { catalog, address } = node;
process.on('message', (order: Order) => {
  if ('slowFor' in order) catalog.slowFor(order.slowFor);
  else addresses.push(...order.addresses);
});
tell({ address });
