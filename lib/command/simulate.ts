import { InvalidConfigError } from '../common/errors.js';
import { checkDocument, ConfigSyntaxError, effective, limitsOf } from '../config/index.js';
import { checkQuota, type CheckedQuota } from '../limiter/quota-options.js';
import { simulate as runSimulation, UsageError } from '../simulation/index.js';
import { type Command } from './command.js';
import { readDocument } from './read-document.js';

export const simulate: Command = {
  name: 'simulate',
  takes: '[FILE]',
  about: 'run the quota of a file on virtual time, through load shapes and faults',
  options: [
    '--scenario NAME   run this one only; may be given more than once',
    '--nodes N         processes; without it each scenario has its own number',
    '--seed N          another course of events',
    '--json FILE       also write all figures to FILE',
    '--svg DIR         also draw each scenario',
  ],
  run(args, output) {
    const [first, ...rest] = args;
    const isFile = first !== undefined && !first.startsWith('--');
    return runSimulation(isFile ? ['--config', first, ...rest] : args, output, quotaIn);
  },
};

/** The quota of a configuration, with its profile in force. */
async function quotaIn(file: string): Promise<CheckedQuota> {
  try {
    const { quota } = limitsOf(effective(checkDocument(await readDocument(file), { name: file })));
    if (quota?.cluster === undefined) {
      throw new UsageError(`${file}: cluster.capacity and apps are needed for a simulation`);
    }
    return checkQuota(quota);
  } catch (error) {
    const isFault = error instanceof InvalidConfigError || error instanceof ConfigSyntaxError;
    if (isFault) throw new UsageError(error.message);
    throw error;
  }
}
