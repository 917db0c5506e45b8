import { userInfo } from 'node:os';
import { newIncarnation } from '../common/ids.js';
import { diff, VersionedConfig, type ConfigLayer, type ConfigSnapshot } from '../config/index.js';
import { UsageError } from '../simulation/index.js';
import { dateOption, readArguments, wholeOption } from './arguments.js';
import { DONE, FAILED, type Command, type Output } from './command.js';
import { tellDiff } from './config-read.js';
import { patchAt, pathOf } from './document-path.js';
import { answerOfFleet, processes, refusalIn, type FleetAnswer } from './fleet-answer.js';
import { readDocument } from './read-document.js';
import { RunningQuotas } from './running-quotas.js';
import { STORE_HELP, STORE_OPTIONS, withStore, type OpenStore } from './store-options.js';
import { inTime } from './table.js';

const WRITE_OPTIONS = {
  ...STORE_OPTIONS,
  by: { type: 'string' },
  expected: { type: 'string' },
} as const;

const WRITE_HELP: readonly string[] = [
  '--by NAME         who does it, for the history (default: your name)',
  '--expected N      only if this is the revision that is stored',
  ...STORE_HELP,
];

export const configSet: Command = {
  name: 'config set',
  takes: 'PATH VALUE or --patch FILE',
  about: 'change the configuration of the whole fleet; null removes',
  options: [
    '--patch FILE      lay all that stands in this file over what holds',
    '--at TIME         from when on it holds, on the clock of Redis (default: at once)',
    '--allow-empty     even if nothing is left configured',
    ...WRITE_HELP,
  ],
  async run(args, output) {
    const options = {
      ...WRITE_OPTIONS,
      patch: { type: 'string' },
      at: { type: 'string' },
      'allow-empty': { type: 'boolean' },
    } as const;
    const { values, words } = readArguments(args, options, [0, 2]);
    const patch = await patchOf(words, values.patch);
    const update = {
      by: values.by ?? yourName(),
      expectedRevision: wholeOption('--expected', values.expected),
      effectiveAt: dateOption('--at', values.at),
      allowEmpty: values['allow-empty'],
    };
    return withStore(values, (store) =>
      change(store, values.json ?? false, output, (config) => config.update(patch, update)),
    );
  },
};

async function patchOf(words: readonly string[], file: string | undefined): Promise<ConfigLayer> {
  if ((words.length === 2) === (file !== undefined) || words.length === 1) {
    throw new UsageError('Give a PATH and a VALUE, or --patch FILE.');
  }
  if (file !== undefined) return (await readDocument(file)) as ConfigLayer;
  return patchAt(pathOf(words[0]!), valueOf(words[1]!)) as ConfigLayer;
}

/** JSON where it is JSON, else a text: so that nobody needs quotes for 100/min. */
function valueOf(word: string): unknown {
  try {
    return JSON.parse(word) as unknown;
  } catch {
    return word;
  }
}

export const configRollback: Command = {
  name: 'config rollback',
  takes: 'REVISION',
  about: 'make a new revision with the content of an old one',
  options: WRITE_HELP,
  run(args, output) {
    const { values, words } = readArguments(args, WRITE_OPTIONS, [1, 1], 'REVISION');
    const revision = wholeOption('REVISION', words[0])!;
    const expectedRevision = wholeOption('--expected', values.expected);
    const options = { by: values.by ?? yourName(), expectedRevision };
    return withStore(values, (store) =>
      change(store, values.json ?? false, output, (config) => config.rollback(revision, options)),
    );
  },
};

type Change = (config: VersionedConfig) => Promise<ConfigSnapshot>;

/** Visits the fleet, without code or file of its own. */
async function change(store: OpenStore, isJson: boolean, output: Output, make: Change) {
  const { config, clock } = store;
  const warn = (text: string) => output.error(text);
  const report = { info: () => undefined, warn, error: warn };
  const nodeId = `weir-${newIncarnation()}`;
  const consumers = [await RunningQuotas.of(config)];
  const settings = { store: config, clock, nodeId, report, consumers, isVisitor: true };
  const fleet = new VersionedConfig(settings);
  try {
    await fleet.start();
    const before = fleet.current();
    const after = await make(fleet);
    const answer = await answerOfFleet(config, clock, after.revision);
    if (isJson) output.log(inJson(before, after, answer));
    else tell(before, after, answer, output);
    return answer.refused.length === 0 ? DONE : FAILED;
  } finally {
    await fleet.close();
  }
}

function inJson(
  before: ConfigSnapshot,
  { revision, staged, document }: ConfigSnapshot,
  { refused, silent }: FleetAnswer,
): string {
  const changes = diff(before.document, document);
  return JSON.stringify({ revision, staged, diff: changes, refused, silent }, null, 2);
}

function tell(
  before: ConfigSnapshot,
  { revision, staged, document }: ConfigSnapshot,
  answer: FleetAnswer,
  output: Output,
): void {
  const from = staged === undefined ? '' : ` takes effect at ${inTime(staged.effectiveAtMs)}`;
  output.log(`revision ${revision}${from}`);
  tellDiff(diff(before.document, document), output);
  const { nodes, silent } = answer;
  if (silent.length > 0) {
    output.log(
      `${silent.length} of ${processes(nodes)} said nothing of it yet: weir status shows who has`,
    );
  }
  const refusal = refusalIn(answer);
  if (refusal !== undefined) output.error(refusal);
}

function yourName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'weir';
  }
}
