import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';

type Argument = string | number;
type BinaryArgument = Argument | Buffer;

/** The scripts as commands of a client. */
export interface Scripts {
  buckets(args: Argument[]): Promise<number[]>;
  /** The node is in the first `own` of the sets; counts the nodes in all of them. */
  heartbeat(
    sets: readonly string[],
    nodeId: string,
    ttlMs: number,
    own: number,
    isLeaving: boolean,
  ): Promise<number[]>;
  lease(args: BinaryArgument[]): Promise<Buffer>;
  seedLimits(args: BinaryArgument[]): Promise<[written: number, revision: number, names: string]>;
  releaseLease(leaseKey: string, mark: string): Promise<number>;
}

/**
 * ioredis sends a script in full once per connection, by its digest from then on, and in full again
 * when the server has forgotten it.
 */
export function defineScripts(client: Redis | Cluster): Scripts {
  client.defineCommand('weirBuckets', { lua: scriptSource('buckets') });
  client.defineCommand('weirHeartbeat', { lua: scriptSource('heartbeat') });
  client.defineCommand('weirLease', { lua: scriptSource('lease'), numberOfKeys: 4 });
  client.defineCommand('weirSeedLimits', { lua: scriptSource('seed-limits'), numberOfKeys: 1 });
  client.defineCommand('weirReleaseLease', { lua: scriptSource('release-lease'), numberOfKeys: 1 });
  const commands = client as unknown as {
    weirBuckets(args: Argument[]): Promise<number[]>;
    weirHeartbeat(args: Argument[]): Promise<number[]>;
    weirLeaseBuffer(args: BinaryArgument[]): Promise<Buffer>;
    weirSeedLimits(args: BinaryArgument[]): Promise<[number, number, string]>;
    weirReleaseLease(leaseKey: string, mark: string): Promise<number>;
  };
  return {
    // A client of the user's may be set to give numbers as texts.
    buckets: (args) => commands.weirBuckets(args).then(asNumbers),
    heartbeat: (sets, nodeId, ttlMs, own, isLeaving) => {
      const args = [sets.length, ...sets, nodeId, ttlMs, own, isLeaving ? 1 : 0];
      return commands.weirHeartbeat(args).then(asNumbers);
    },
    // What the script packs are bytes, not text.
    lease: (args) => commands.weirLeaseBuffer(args),
    seedLimits: async (args) => {
      const [written, revision, names] = await commands.weirSeedLimits(args);
      return [Number(written), Number(revision), names];
    },
    releaseLease: (leaseKey, mark) => commands.weirReleaseLease(leaseKey, mark),
  };
}

/** `lua/` lies beside lib/, dist/ and dist-cjs/ alike. */
export function scriptSource(name: string): string {
  return readFileSync(new URL(`../../../lua/${name}.lua`, import.meta.url), 'utf8');
}

function asNumbers(reply: number[]): number[] {
  return typeof reply[0] === 'number' ? reply : reply.map(Number);
}
