import type { Cluster, Redis } from 'ioredis';
import { type Cancel, type Clock } from '../../common/clock.js';

/** How long after a connection was lost the nodes of the cluster are read again, to make another one. */
const READ_AGAIN_MS = 250;

/** Reads the nodes of the cluster again; ioredis has it in all versions that we support. */
interface ClusterInternals {
  refreshSlotsCache?(done: () => void): void;
}

/**
 * Keeps connections to all masters of a cluster. ioredis gives up a node whose connection is lost, until it
 * next reads which nodes there are; connects to a master when it is first needed; and does not tell when
 * that is done. Decisions should wait for none of that. A client of the user's reads the nodes by itself.
 */
export function keepMasters(
  client: Cluster,
  isOurs: boolean,
  clock: Pick<Clock, 'after'>,
  onReady: () => void,
): Cancel {
  let cancelRead: Cancel | undefined;
  const found = (node: Redis): void => {
    node.once('ready', onReady);
    if (client.status === 'ready') connectMasters(client);
  };
  const lost = (): void => {
    cancelRead ??= clock.after(READ_AGAIN_MS, () => {
      cancelRead = undefined;
      if (client.status === 'ready') (client as ClusterInternals).refreshSlotsCache?.(() => {});
    });
  };
  client.on('+node', found);
  if (isOurs) client.on('-node', lost);
  return () => {
    client.off('+node', found);
    client.off('-node', lost);
    cancelRead?.();
  };
}

export function connectMasters(client: Redis | Cluster): void {
  if (!('nodes' in client)) return;
  for (const node of client.nodes('master')) {
    if (node.status === 'wait') node.connect().catch(() => {});
  }
}
