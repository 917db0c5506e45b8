import { type Redis } from 'ioredis';
import { infoField } from '../../test/support/redis-client.js';

/** The work of Redis, by its own counters. */
export interface RedisUsage {
  readonly cpuMicros: number;
  /** Commands as Redis counts them: the call of a script, and each command that the script runs. */
  readonly commands: number;
  /** Time of these commands, without reading, answering and waking up for them. */
  readonly commandMicros: number;
  /** Times that Redis was woken up to read from a connection, which costs more than most commands. */
  readonly reads: number;
  /** Calls of scripts alone: what travels there and back. */
  readonly scriptCalls: number;
  /** Time of the scripts, without the way there and back. */
  readonly scriptMicros: number;
}

const SCRIPT_COMMANDS = ['eval', 'evalsha', 'fcall'];

/** Runs `work`, and says what Redis did meanwhile; the asking itself is taken out. */
export async function withRedisUsage<Result>(
  client: Redis,
  work: () => Promise<Result>,
): Promise<{ result: Result; usage: RedisUsage }> {
  const before = await readUsage(client);
  const result = await work();
  const after = await readUsage(client);
  const usage = {
    cpuMicros: after.cpuMicros - before.cpuMicros,
    // The first INFO is counted only after it has been answered.
    commands: after.commands - before.commands - 1,
    commandMicros: after.commandMicros - before.commandMicros,
    reads: after.reads - before.reads - 1,
    scriptCalls: after.scriptCalls - before.scriptCalls,
    scriptMicros: after.scriptMicros - before.scriptMicros,
  };
  return { result, usage };
}

async function readUsage(client: Redis): Promise<RedisUsage> {
  const info = await client.info('all');
  const seconds = numberOf(info, 'used_cpu_user') + numberOf(info, 'used_cpu_sys');
  return {
    cpuMicros: seconds * 1e6,
    commands: numberOf(info, 'total_commands_processed'),
    commandMicros: microsOf(info),
    reads: numberOf(info, 'total_reads_processed'),
    scriptCalls: sumOf(info, 'calls'),
    scriptMicros: sumOf(info, 'usec'),
  };
}

function numberOf(info: string, field: string): number {
  return Number(infoField(info, field) ?? NaN);
}

/** The sum over all commands but INFO, which asks. */
function microsOf(info: string): number {
  const found = [...info.matchAll(/^cmdstat_(?!info)[^:]+:calls=\d+,usec=(\d+)/gm)];
  return found.reduce((sum, [, micros]) => sum + Number(micros), 0);
}

/** `cmdstat_evalsha:calls=12,usec=…`; absent until the command was called for the first time. */
function sumOf(info: string, figure: 'calls' | 'usec'): number {
  const pattern = new RegExp(`\\b${figure}=(\\d+)`);
  return SCRIPT_COMMANDS.map((command) => infoField(info, `cmdstat_${command}`) ?? '')
    .map((stat) => Number(pattern.exec(stat)?.[1] ?? 0))
    .reduce((sum, value) => sum + value, 0);
}
