import type { Cluster, Redis } from 'ioredis';
import { scriptSource } from './scripts.js';

/** Revision, milliseconds, whether the record is known, current and previous record. */
type ReadReply = [string, number, number, string, string];
type WriteReply = [written: number, revision: number, nowMs: number];

/** The scripts of the configuration, as commands of a client. */
export interface ConfigScripts {
  read(config: string, known: string): Promise<ReadReply>;
  write(...args: (string | number)[]): Promise<WriteReply>;
  acknowledge(acks: string, deadlines: string, ...rest: (string | number)[]): Promise<number>;
  acks(acks: string, deadlines: string): Promise<string[]>;
}

export function defineConfigScripts(client: Redis | Cluster): ConfigScripts {
  const define = (name: string, script: string, numberOfKeys: number): void =>
    client.defineCommand(name, { lua: scriptSource(script), numberOfKeys });
  define('weirConfigRead', 'config-read', 1);
  define('weirConfigWrite', 'config-write', 2);
  define('weirConfigAcknowledge', 'config-acknowledge', 2);
  define('weirConfigAcks', 'config-acks', 2);
  const commands = client as unknown as {
    weirConfigRead: ConfigScripts['read'];
    weirConfigWrite: ConfigScripts['write'];
    weirConfigAcknowledge: ConfigScripts['acknowledge'];
    weirConfigAcks: ConfigScripts['acks'];
  };
  return {
    read: (...args) => commands.weirConfigRead(...args),
    write: (...args) => commands.weirConfigWrite(...args),
    acknowledge: (...args) => commands.weirConfigAcknowledge(...args),
    acks: (...args) => commands.weirConfigAcks(...args),
  };
}
