import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { root } from '../setup/ensure-built.js';

/** Commands that a user of Redis needs for the library, as the docs have them. */
export function documentedCommands(): string[] {
  const page = readFileSync(join(root, 'docs/redis-permissions.md'), 'utf8');
  const rule = /ACL SETUSER weir [^`]*/.exec(page)![0];
  return [...rule.matchAll(/\+([a-z]+)/g)].map(([, command]) => command!);
}

/** A line of redis.conf: the least user, on these keys and channels. */
export function leastUser(keys = '~* &*'): string {
  const commands = documentedCommands().map((command) => `+${command}`);
  return `weir on >weir ${keys} -@all ${commands.join(' ')}`;
}
