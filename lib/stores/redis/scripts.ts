import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';

type Argument = string | number;

/** The scripts as commands of a client. */
export interface Scripts {
  buckets(args: Argument[]): Promise<number[]>;
  heartbeat(nodesKey: string, nodeId: string, ttlMs: number): Promise<number>;
}

/**
 * ioredis sends a script in full once per connection, by its digest from then on, and in full again
 * when the server has forgotten it.
 */
export function defineScripts(client: Redis | Cluster): Scripts {
  client.defineCommand('weirBuckets', { lua: source('buckets') });
  client.defineCommand('weirHeartbeat', { lua: source('heartbeat'), numberOfKeys: 1 });
  const commands = client as unknown as {
    weirBuckets(args: Argument[]): Promise<number[]>;
    weirHeartbeat(nodesKey: string, nodeId: string, ttlMs: number): Promise<number>;
  };
  return {
    buckets: (args) => commands.weirBuckets(args),
    heartbeat: (nodesKey, nodeId, ttlMs) => commands.weirHeartbeat(nodesKey, nodeId, ttlMs),
  };
}

/** `lua/` lies beside lib/, dist/ and dist-cjs/ alike. */
function source(name: string): string {
  return readFileSync(new URL(`../../../lua/${name}.lua`, import.meta.url), 'utf8');
}
