import { effective } from '../config/document/effective.js';
import { checkDocument } from '../config/schema/check.js';
import { limitsOf } from '../config/schema/limits-of.js';
import { checkQuota, type CheckedQuota } from '../limiter/quota-options.js';
import { askedFor, scenarioList } from './simulator/command/arguments.js';
import { printVerdict, runAsked, toJson } from './simulator/command/simulate.js';
import { readArguments } from './arguments.js';
import { DONE, FAILED, type Command } from './command.js';
import { CommandFailedError } from './errors.js';
import { readDocument } from './read-document.js';

export const simulate: Command = {
  name: 'simulate',
  takes: '[FILE]',
  about: 'run the quota of a file on virtual time, through load shapes and faults',
  options: [
    '--scenario NAME   run this one only; may be given more than once',
    '--nodes N         processes; without it each scenario has its own number',
    '--seed N          another course of events',
    '--svg DIR         also draw each scenario',
    '--json            for machines: all figures, once all is done',
  ],
  more: scenarioList(),
  async run(args, output) {
    const { values, words } = readArguments(args, OPTIONS, [0, 1]);
    const { json: isJson = false, ...others } = values;
    const asked = askedFor({ ...others, config: words[0] });
    const silent = { ...output, log: () => undefined };
    const rows = await runAsked(asked, isJson ? silent : output, quotaIn);
    if (isJson) output.log(toJson(rows));
    return printVerdict(rows, isJson ? silent : output) ? DONE : FAILED;
  },
};

const OPTIONS = {
  scenario: { type: 'string', multiple: true },
  nodes: { type: 'string' },
  seed: { type: 'string' },
  svg: { type: 'string' },
  json: { type: 'boolean' },
} as const;

/** The quota of a configuration, with its profile in force. */
async function quotaIn(file: string): Promise<CheckedQuota> {
  const { quota } = limitsOf(effective(checkDocument(await readDocument(file), { name: file })));
  if (quota?.cluster === undefined) {
    throw new CommandFailedError(`${file}: cluster.capacity and apps are needed for a simulation`);
  }
  return checkQuota(quota);
}
