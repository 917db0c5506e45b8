import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';

type Argument = string | number;
type BinaryArgument = Argument | Buffer;

/** The scripts as commands of a client. */
export interface Scripts {
  buckets(args: Argument[]): Promise<number[]>;
  heartbeat(nodesKey: string, nodeId: string, ttlMs: number): Promise<number>;
  lease(args: BinaryArgument[]): Promise<Buffer>;
  seedLimits(args: BinaryArgument[]): Promise<[written: number, revision: number]>;
  releaseLease(leaseKey: string, mark: string): Promise<number>;
}

/**
 * ioredis sends a script in full once per connection, by its digest from then on, and in full again
 * when the server has forgotten it.
 */
export function defineScripts(client: Redis | Cluster): Scripts {
  client.defineCommand('weirBuckets', { lua: source('buckets') });
  client.defineCommand('weirHeartbeat', { lua: source('heartbeat'), numberOfKeys: 1 });
  client.defineCommand('weirLease', { lua: source('lease'), numberOfKeys: 4 });
  client.defineCommand('weirSeedLimits', { lua: source('seed-limits'), numberOfKeys: 1 });
  client.defineCommand('weirReleaseLease', { lua: source('release-lease'), numberOfKeys: 1 });
  const commands = client as unknown as {
    weirBuckets(args: Argument[]): Promise<number[]>;
    weirHeartbeat(nodesKey: string, nodeId: string, ttlMs: number): Promise<number>;
    weirLeaseBuffer(args: BinaryArgument[]): Promise<Buffer>;
    weirSeedLimits(args: BinaryArgument[]): Promise<[written: number, revision: number]>;
    weirReleaseLease(leaseKey: string, mark: string): Promise<number>;
  };
  return {
    // A client of the user's may be set to give numbers as texts.
    buckets: (args) => commands.weirBuckets(args).then(asNumbers),
    heartbeat: (nodesKey, nodeId, ttlMs) => commands.weirHeartbeat(nodesKey, nodeId, ttlMs),
    // What the script packs are bytes, not text.
    lease: (args) => commands.weirLeaseBuffer(args),
    seedLimits: (args) => commands.weirSeedLimits(args),
    releaseLease: (leaseKey, mark) => commands.weirReleaseLease(leaseKey, mark),
  };
}

/** `lua/` lies beside lib/, dist/ and dist-cjs/ alike. */
function source(name: string): string {
  return readFileSync(new URL(`../../../lua/${name}.lua`, import.meta.url), 'utf8');
}

function asNumbers(reply: number[]): number[] {
  return typeof reply[0] === 'number' ? reply : reply.map(Number);
}
