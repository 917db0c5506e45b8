import { errorText } from '../common/errors.js';
import { type ConfigDiff } from '../config/document/diff.js';
import { type ConfigRecord, type StagedUpdate } from '../stores/config-store.js';
import { readArguments, wholeOption } from './arguments.js';
import { asJson, DONE, type Command } from './command.js';
import { changedPaths } from './config-read.js';
import { changeFleet, WRITE_HELP, WRITE_OPTIONS } from './fleet-change.js';
import { STORE_HELP, STORE_OPTIONS, withStore } from './store-options.js';
import { prospectsOf, readStored } from './stored-config.js';
import { isoTime, table } from './table.js';

export const configStaged: Command = {
  name: 'config staged',
  takes: '',
  about: 'list the updates that wait for their time',
  options: STORE_HELP,
  run: (args, output) => {
    const { values } = readArguments(args, STORE_OPTIONS, [0, 0]);
    return withStore(values, async ({ config }) => {
      const waiting = waitingIn(await readStored(config));
      if (values.json) output.log(asJson(waiting));
      else if (waiting.length === 0) output.log('no update waits for its time');
      else output.log(table(['id', 'takes effect', 'by', 'changes'], waiting.map(toRow)));
      return DONE;
    });
  },
};

type WaitingUpdate = StagedUpdate & { readonly diff: ConfigDiff; readonly fault?: string };

function waitingIn(record: ConfigRecord | undefined): WaitingUpdate[] {
  if (record === undefined) return [];
  return prospectsOf(record).map(({ update, changes, fault }) => ({
    ...{ ...update, diff: changes },
    ...(fault !== undefined && { fault: errorText(fault) }),
  }));
}

function toRow({ id, effectiveAtMs, by, diff, fault }: WaitingUpdate): unknown[] {
  const changes = fault === undefined ? changedPaths(diff) : `does not fit: ${fault}`;
  return [String(id), isoTime(effectiveAtMs), by, changes];
}

export const configCancel: Command = {
  name: 'config cancel',
  takes: 'ID',
  about: 'take back an update that waits for its time',
  options: WRITE_HELP.filter((line) => !line.startsWith('--keep')),
  run(args, output) {
    const { keep: _always, ...options } = WRITE_OPTIONS;
    const { values, words } = readArguments(args, options, [1, 1], 'ID');
    const id = wholeOption('ID', words[0], 1)!;
    return changeFleet({ ...values, keep: true }, output, (config, said) =>
      config.cancel(id, said),
    );
  },
};
