import { dump } from 'js-yaml';
import { inOneLine } from '../common/quoted.js';
import { impactOf, type Impact } from '../observability/impact.js';
import { percent } from '../observability/figures.js';
import { diff, isEmptyDiff, type ConfigDiff } from '../config/document/diff.js';
import { type PastRevision } from '../config/rate-limit-config.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { pastRevisions } from '../config/snapshot.js';
import { type ConfigRecord, type ConfigStore } from '../stores/config-store.js';
import { readArguments, wholeOption, TEXT } from './arguments.js';
import { asJson, DONE, FAILED, type Command, type Output, CommandFailedError } from './command.js';
import { atPath, insteadOf, pathOf } from './documents.js';
import {
  RunningQuotas,
  documentIn,
  documentNamed,
  isRevision,
  laidOver,
  readStored,
} from './stored-config.js';
import { fleetTable } from './report.js';
import { STORE_HELP, STORE_OPTIONS, withStore, type OpenStore } from './store-options.js';
import { inLine, isoTime, table } from './table.js';

export const configGet: Command = {
  name: 'config get',
  takes: '[PATH]',
  about: 'print the configuration that the fleet works with, or a part of it',
  options: STORE_HELP,
  run: (args, output) => {
    const { values, words } = readArguments(args, STORE_OPTIONS, [0, 1]);
    return withStore(values, async ({ config }) => {
      const holding = await readStored(config);
      const document = documentIn(holding);
      const [path] = words;
      const part = path === undefined ? document : partOf(document, path);
      const revision = holding?.revision ?? 0;
      const profile = document.profile ?? 'normal';
      if (values.json) {
        const { staged = [] } = holding ?? {};
        output.log(asJson({ revision, profile, staged, document: part }));
        return DONE;
      }
      output.log(`# ${headline(holding, profile)}`);
      for (const { id, effectiveAtMs } of holding?.staged ?? []) {
        output.log(`# update ${id} takes effect at ${isoTime(effectiveAtMs)}`);
      }
      output.log(dump(part, { lineWidth: -1, noRefs: true }).trimEnd());
      return DONE;
    });
  },
};

function partOf(document: object, path: string): unknown {
  const names = pathOf(path);
  const part = atPath(document, names);
  if (part !== undefined) return part;
  throw new CommandFailedError(`there is nothing at ${path}${insteadOf(document, names)}`);
}

function headline(record: ConfigRecord | undefined, profile: string): string {
  if (record === undefined) return 'nothing is stored';
  const { revision, kind, by, atMs } = record;
  return `revision ${revision}, profile ${profile}: ${kind} by ${inOneLine(by)} at ${isoTime(atMs)}`;
}

export const configDiff: Command = {
  name: 'config diff',
  takes: 'FROM [TO]',
  about: 'say what changed since a revision, or what a file would change',
  options: STORE_HELP,
  run: (args, output) => {
    const { values, words } = readArguments(args, STORE_OPTIONS, [1, 2], 'FROM');
    return withStore(values, async (store) => {
      const { config } = store;
      const holding = await readStored(config);
      const current = documentIn(holding);
      const [from, to] = words as [string, string?];
      const isPlan = to === undefined && !isRevision(from);
      const first = isPlan ? current : await documentNamed(config, from);
      const second = isPlan ? await laidOver(holding, from) : await named(config, to, current);
      const objection = isPlan ? (await RunningQuotas.of(config)).objectionTo(second) : undefined;
      const changes = diff(first, second);
      const objectedTo = objection && { refused: objection.message };
      const impact = await impactOn(store, first, second);
      const known = impact.minutes > 0 ? impact : null;
      if (values.json) output.log(asJson({ ...changes, ...objectedTo, impact: known }));
      else {
        tellDiff(changes, output);
        if (!isEmptyDiff(changes)) tellImpact(impact, output);
      }
      if (objection === undefined) return DONE;
      output.error(`running processes would refuse it: ${objection.message}`);
      return FAILED;
    });
  },
};

const named = (config: ConfigStore, word: string | undefined, current: ConfigDocument) =>
  word === undefined ? current : documentNamed(config, word);

export function tellDiff(changes: ConfigDiff, output: Output): void {
  if (isEmptyDiff(changes)) return output.log('no difference');
  const rows = [
    ...changes.added.map(({ path, after }) => ['+', path, '', inLine(after)]),
    ...changes.removed.map(({ path, before }) => ['-', path, inLine(before), '']),
    ...changes.changed.map(({ path, before, after }) => ['~', path, inLine(before), inLine(after)]),
  ];
  output.log(table(['', 'path', 'before', 'after'], rows));
}

async function impactOn(
  store: OpenStore,
  before: ConfigDocument,
  after: ConfigDocument,
): Promise<Impact> {
  const { clock } = store;
  const table = await fleetTable(store, 'minutes');
  return impactOf(before, after, table, clock.epochMs(clock.now()) * 1000);
}

function tellImpact({ minutes, apps, policies }: Impact, output: Output): void {
  const changed = apps.filter(({ demand }) => demand > 0);
  if (minutes === 0) {
    return output.log('\nWhat it would do: no figures of the fleet are known (monitor.fleet)');
  }
  if (changed.length === 0 && policies.length === 0) return;
  output.log(`\nThe last ${minutes} minutes, with these limits:`);
  if (changed.length > 0) {
    const rows = changed.map((app) => [
      ...[app.app, app.demand, app.peakDemand, app.deniedBefore, app.deniedAfter],
      ...[app.minutesBefore, app.minutesAfter],
    ]);
    const head = ['app', 'asked/s', 'at most', 'denied/s before', 'after', 'minutes before'];
    output.log(table([...head, 'after'], rows));
  }
  if (policies.length === 0) return;
  const rows = policies.map(({ policy, change, rate, peak, denied }) => {
    return [policy, change, rate, peak, percent(denied)];
  });
  output.log(`\n${table(['policy', '', 'requests/s', 'at most', 'denied so far'], rows)}`);
  output.log('Which keys a policy would deny cannot be said: keys are not kept.');
}

const DEFAULT_COUNT = 20;

export const configHistory: Command = {
  name: 'config history',
  takes: '',
  about: 'list the last revisions',
  options: [`--count N         so many (default: ${DEFAULT_COUNT})`, ...STORE_HELP],
  run: (args, output) => {
    const options = { ...STORE_OPTIONS, count: TEXT } as const;
    const { values } = readArguments(args, options, [0, 0]);
    const count = wholeOption('--count', values.count, 1) ?? DEFAULT_COUNT;
    return withStore(values, async ({ config }) => {
      const revisions = pastRevisions(await config.history(count + 1), count);
      if (values.json) {
        output.log(asJson(revisions));
        return DONE;
      }
      if (revisions.length === 0) output.log('nothing is stored');
      else output.log(table(['revision', 'kind', 'by', 'at', 'changes'], revisions.map(toRow)));
      return DONE;
    });
  },
};

function toRow({ revision, kind, by, atMs, diff, about, reason }: PastRevision) {
  const why = reason === undefined ? '' : `: ${reason}`;
  const update = about && `update ${about.id} for ${isoTime(about.effectiveAtMs)}${why}`;
  const changes = diff === undefined ? '' : changedPaths(diff);
  const told = [update, changes].filter((text) => text !== undefined && text !== '').join('; ');
  // The layer of another service, for one, that says the same.
  const nothing = diff === undefined ? '' : 'no limit';
  return [revision, kind, by, isoTime(atMs), told || nothing];
}

export function changedPaths({ added, removed, changed }: ConfigDiff): string {
  const paths = [...added, ...removed, ...changed].map(({ path }) => path);
  const rest = paths.length > 3 ? ` and ${paths.length - 3} more` : '';
  return `${paths.slice(0, 3).join(', ')}${rest}`;
}
