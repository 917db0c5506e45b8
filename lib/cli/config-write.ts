import { type ConfigLayer } from '../config/schema/check.js';
import { UsageError, type Command } from './command.js';
import { dateOption, readArguments, wholeOption, FLAG, TEXT } from './arguments.js';
import { patchAt, pathOf, readDocument } from './documents.js';
import { changeFleet, WRITE_HELP, WRITE_OPTIONS } from './fleet-change.js';
import { mustBeMeant } from './meant.js';
import { prefixOf } from './store-options.js';

export const configSet: Command = {
  name: 'config set',
  takes: 'PATH VALUE or --patch FILE',
  about: 'change the configuration of the whole fleet; null removes',
  options: [
    '--patch FILE      lay all that stands in this file over what holds',
    '--at TIME         from when on it holds, on the clock of Redis (default: at once)',
    '--new             allow policies that do not exist yet',
    '--base            change the base value although the profile in force overrides it',
    '--allow-empty     even if nothing is left configured',
    ...WRITE_HELP,
  ],
  async run(args, output) {
    const options = {
      ...WRITE_OPTIONS,
      patch: TEXT,
      at: TEXT,
      new: FLAG,
      base: FLAG,
      'allow-empty': FLAG,
    } as const;
    const { values, words } = readArguments(args, options, [0, 2]);
    const patch = await patchOf(words, values.patch);
    const effectiveAt = dateOption('--at', values.at);
    const allowEmpty = values['allow-empty'];
    return changeFleet(values, output, (config, said, stored) => {
      const { new: isNew, base: isBase } = values;
      mustBeMeant(patch, stored, effectiveAt, { isNew, isBase, prefix: prefixOf(values) });
      return config.update(patch, { ...said, effectiveAt, allowEmpty });
    });
  },
};

async function patchOf(words: readonly string[], file: string | undefined): Promise<ConfigLayer> {
  if ((words.length === 2) === (file !== undefined) || words.length === 1) {
    throw new UsageError('Give a PATH and a VALUE, or --patch FILE.');
  }
  if (file !== undefined) return (await readDocument(file)) as ConfigLayer;
  return patchAt(pathOf(words[0]!), valueOf(words[1]!)) as ConfigLayer;
}

/** JSON where it is JSON, else a text: `100/min` needs no quotes. */
function valueOf(word: string): unknown {
  try {
    return JSON.parse(word) as unknown;
  } catch {
    return word;
  }
}

export const configUnset: Command = {
  name: 'config unset',
  takes: 'PATH',
  about: 'drop what updates have set there: code and file hold again',
  options: WRITE_HELP,
  run(args, output) {
    const { values, words } = readArguments(args, WRITE_OPTIONS, [1, 1], 'PATH');
    const path = pathOf(words[0]!);
    return changeFleet(values, output, (config, said) => config.unset(path, said));
  },
};

export const configRollback: Command = {
  name: 'config rollback',
  takes: 'REVISION',
  about: 'make a new revision with the content of an old one',
  options: WRITE_HELP,
  more: [
    'What waited for its time then waits again, unless that has passed; what was staged since is',
    'cancelled.',
  ],
  run(args, output) {
    const { values, words } = readArguments(args, WRITE_OPTIONS, [1, 1], 'REVISION');
    const revision = wholeOption('REVISION', words[0])!;
    return changeFleet(values, output, (config, said) => config.rollback(revision, said));
  },
};
