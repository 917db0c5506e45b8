import 'reflect-metadata';
import { portFrom } from '../support/listen.js';
import { startNode } from './shop-node.js';
import { stageOver } from './stage.js';
import { type Order, type Told } from './three-processes.js';

const tell = (told: Told): void => void process.send!(told);

// Ctrl-C in a terminal, and its end, are told to all processes; the one that began this one ends it.
for (const signal of ['SIGINT', 'SIGHUP'] as const) process.on(signal, () => {});
// It ends when it is alone, also while it starts.
let end: () => unknown = () => process.exit();
process.once('disconnect', () => end());
const { NODE_ID: nodeId, REDIS_URL: url, PORT: port } = process.env;
// Three nodes, Redis and their callers share one machine: what is late here is the machine.
const store = { type: 'redis', url: url!, decisionTimeout: '500ms' } as const;
const addresses: string[] = [];
const at = { nodeId: nodeId!, port: portFrom(port) };
const stage = stageOver(tell);
const { app, catalog, address } = await startNode({ ...at, store, addresses, stage });
end = () => app.close();
process.on('message', (order: Order) => {
  if ('slowFor' in order) catalog.slowFor(order.slowFor);
  else addresses.push(...order.addresses);
});
tell({ address });
