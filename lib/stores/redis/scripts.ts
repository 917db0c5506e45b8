import { readFileSync } from 'node:fs';
import type { Cluster, Redis } from 'ioredis';
import { packageFile } from '../package-file.js';
import { wireOf } from './wire.js';

export type ScriptArgument = string | number;
export type BinaryArgument = ScriptArgument | Buffer;

/** The reply to a heartbeat. */
export interface Heartbeat {
  /** Nodes alive, by set. */
  readonly counts: readonly number[];
  /** The node was there already. Else it is new, or others may have been lost with it: there may be more. */
  readonly wasKnown: boolean;
}

/** The scripts as commands of a client. A reply that is not the one to its call rejects. */
export interface Scripts {
  /** `isAnswer` says whether a reply is the one to the batch. */
  buckets(
    args: ScriptArgument[],
    isAnswer: (reply: readonly number[]) => boolean,
  ): Promise<readonly number[]>;
  /** `now` is '' for Redis' own clock; the time to live is that of the bucket. */
  forgetBucket(bucketKey: string, resetKey: string, now: string, ttlMs: number): Promise<void>;
  /** The node is in the first `own` of the sets; counts the nodes in all of them. */
  heartbeat(
    sets: readonly string[],
    nodeId: string,
    ttlMs: number,
    own: number,
    isLeaving: boolean,
  ): Promise<Heartbeat>;
  /** `read` gives undefined for a reply that is not the one to the call. */
  lease<T>(args: BinaryArgument[], read: (reply: unknown) => T | undefined): Promise<T>;
  seedLimits(args: BinaryArgument[]): Promise<[written: number, revision: number, names: string]>;
  /** True if the lease is the mark's, now and for the term. */
  holdLease(leaseKey: string, mark: string, termMs: number): Promise<boolean>;
  releaseLease(leaseKey: string, mark: string): Promise<void>;
  /** True if the text is there, over the one with the mark that was read. */
  swapText(
    key: string,
    readMark: string,
    mark: string,
    text: string,
    ttlMs: number,
  ): Promise<boolean>;
}

/**
 * ioredis sends a script in full once per connection, by its digest from then on, and in full again
 * when the server has forgotten it.
 */
export function defineScripts(client: Redis | Cluster): Scripts {
  client.defineCommand('weirBuckets', { lua: scriptSource('buckets') });
  client.defineCommand('weirForgetBucket', { lua: scriptSource('forget-bucket'), numberOfKeys: 2 });
  client.defineCommand('weirHeartbeat', { lua: scriptSource('heartbeat') });
  client.defineCommand('weirLease', { lua: scriptSource('lease'), numberOfKeys: 4 });
  client.defineCommand('weirSeedLimits', { lua: scriptSource('seed-limits'), numberOfKeys: 1 });
  client.defineCommand('weirHoldLease', { lua: scriptSource('hold-lease'), numberOfKeys: 1 });
  client.defineCommand('weirReleaseLease', { lua: scriptSource('release-lease'), numberOfKeys: 1 });
  client.defineCommand('weirSwapText', { lua: scriptSource('swap-text'), numberOfKeys: 1 });
  type ScriptCommand = (args: BinaryArgument[]) => Promise<unknown>;
  const commands = client as unknown as Readonly<
    Record<
      | 'weirBuckets'
      | 'weirForgetBucket'
      | 'weirHeartbeat'
      | 'weirLeaseBuffer'
      | 'weirSeedLimits'
      | 'weirHoldLease'
      | 'weirReleaseLease'
      | 'weirSwapText',
      ScriptCommand
    >
  >;
  const wire = wireOf(client);
  return {
    buckets: async (args, isAnswer) => {
      const reply = asNumbers(await commands.weirBuckets(args));
      if (isAnswer(reply)) return reply;
      throw wire.stray('buckets');
    },
    forgetBucket: async (...args) => {
      await wire.call('forget-bucket', (call) => commands.weirForgetBucket([...args, call]));
    },
    heartbeat: async (sets, nodeId, ttlMs, own, isLeaving) => {
      const args = [sets.length, ...sets, nodeId, ttlMs, own, isLeaving ? 1 : 0];
      const reply = await wire.call('heartbeat', (call) => commands.weirHeartbeat([...args, call]));
      const figures = reply.map(Number);
      return { counts: figures.slice(0, -1), wasKnown: figures.at(-1) === 1 };
    },
    lease: async (args, read) => {
      // The script packs bytes, not text.
      const answer = read(await commands.weirLeaseBuffer(args));
      if (answer !== undefined) return answer;
      throw wire.stray('lease');
    },
    seedLimits: async (args) => {
      const [written, revision, names] = await wire.call('seed-limits', (call) =>
        commands.weirSeedLimits([...args, call]),
      );
      return [Number(written), Number(revision), String(names)];
    },
    holdLease: async (leaseKey, mark, termMs) => {
      const args = [leaseKey, mark, Math.ceil(termMs)];
      const [isHeld] = await wire.call('hold-lease', (call) =>
        commands.weirHoldLease([...args, call]),
      );
      return Number(isHeld) === 1;
    },
    releaseLease: async (leaseKey, mark) => {
      await wire.call('release-lease', (call) => commands.weirReleaseLease([leaseKey, mark, call]));
    },
    swapText: async (key, readMark, mark, text, ttlMs) => {
      const args = [key, readMark, mark, text, Math.ceil(ttlMs)];
      const [isThere] = await wire.call('swap-text', (call) =>
        commands.weirSwapText([...args, call]),
      );
      return Number(isThere) === 1;
    },
  };
}

export function scriptSource(name: string): string {
  return readFileSync(packageFile(`lua/${name}.lua`), 'utf8');
}

/** A client of the user's may be set to give numbers as texts. */
function asNumbers(reply: unknown): readonly number[] {
  if (!Array.isArray(reply)) return [];
  if (typeof reply[0] === 'number') return reply as number[];
  return reply.map((figure: unknown) => (typeof figure === 'string' ? Number(figure) : NaN));
}

/** Revision, milliseconds, whether the record is known, current and previous record, orders. */
type ReadReply = [string, number, number, string, string, number];
type WriteReply = [written: number, revision: number, nowMs: number];

/** The scripts of the configuration, as commands of a client. A reply to another call rejects. */
export interface ConfigScripts {
  read(config: string, orders: string, known: string): Promise<ReadReply>;
  write(...args: ScriptArgument[]): Promise<WriteReply>;
  acknowledge(acks: string, deadlines: string, ...rest: ScriptArgument[]): Promise<void>;
  acks(acks: string, deadlines: string): Promise<string[]>;
}

export function defineConfigScripts(client: Redis | Cluster): ConfigScripts {
  const wire = wireOf(client);
  const define = (name: string, script: string, numberOfKeys: number) => {
    client.defineCommand(name, { lua: scriptSource(script), numberOfKeys });
    const commands = client as unknown as Record<
      string,
      (args: ScriptArgument[]) => Promise<unknown>
    >;
    return (...args: ScriptArgument[]): Promise<unknown> =>
      wire.call(script, (call) => commands[name]!([...args, call]));
  };
  const read = define('weirConfigRead', 'config-read', 2);
  const write = define('weirConfigWrite', 'config-write', 2);
  const acknowledge = define('weirConfigAcknowledge', 'config-acknowledge', 2);
  const acks = define('weirConfigAcks', 'config-acks', 2);
  return {
    read: async (...args) => (await read(...args)) as ReadReply,
    write: async (...args) => (await write(...args)) as WriteReply,
    acknowledge: async (...args) => void (await acknowledge(...args)),
    acks: async (...args) => (await acks(...args)) as string[],
  };
}
