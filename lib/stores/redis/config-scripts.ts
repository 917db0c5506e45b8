import type { Cluster, Redis } from 'ioredis';
import { scriptSource } from './scripts.js';
import { wireOf } from './wire.js';

type Argument = string | number;
/** Revision, milliseconds, whether the record is known, current and previous record, orders. */
type ReadReply = [string, number, number, string, string, number];
type WriteReply = [written: number, revision: number, nowMs: number];

/** The scripts of the configuration, as commands of a client. A reply to another call rejects. */
export interface ConfigScripts {
  read(config: string, orders: string, known: string): Promise<ReadReply>;
  write(...args: Argument[]): Promise<WriteReply>;
  acknowledge(acks: string, deadlines: string, ...rest: Argument[]): Promise<void>;
  acks(acks: string, deadlines: string): Promise<string[]>;
}

export function defineConfigScripts(client: Redis | Cluster): ConfigScripts {
  const wire = wireOf(client);
  const define = (name: string, script: string, numberOfKeys: number) => {
    client.defineCommand(name, { lua: scriptSource(script), numberOfKeys });
    const commands = client as unknown as Record<string, (args: Argument[]) => Promise<unknown>>;
    return (...args: Argument[]): Promise<unknown> =>
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
