import { userInfo } from 'node:os';
import { newIncarnation } from '../common/ids.js';
import { ConfigConflictError } from '../config/config-errors.js';
import { diff, type ConfigDiff } from '../config/document/diff.js';
import { type ConfigSnapshot } from '../config/rate-limit-config.js';
import { VersionedConfig } from '../config/versioned-config.js';
import {
  type ConfigRecord,
  type ConfigStore,
  type NodeAck,
  type StagedUpdate,
} from '../stores/config-store.js';
import { wholeOption, FLAG, TEXT } from './arguments.js';
import { asJson, DONE, FAILED, type Output } from './command.js';
import { tellDiff } from './config-read.js';
import { RunningQuotas, changesBy, documentIn, readStored } from './stored-config.js';
import { STORE_HELP, STORE_OPTIONS, withStore, type StoreValues } from './store-options.js';
import { isoTime } from './table.js';
import { type Clock } from '../common/clock.js';
import { StoreUnavailableError } from '../common/errors.js';

export const WRITE_OPTIONS = {
  ...STORE_OPTIONS,
  by: TEXT,
  expected: TEXT,
  keep: FLAG,
} as const;

export const WRITE_HELP: readonly string[] = [
  '--keep            leave it even if every running process refuses it',
  '--by NAME         who does it, for the history (default: your name)',
  '--expected N      only if this is the revision that is stored',
  ...STORE_HELP,
];

export interface WriteValues extends StoreValues {
  readonly json?: boolean;
  readonly by?: string;
  readonly expected?: string;
  readonly keep?: boolean;
}

/** The author of a change, and the revision that it expects. */
export interface ChangeAuthor {
  readonly by: string;
  readonly expectedRevision: number | undefined;
}

/** Changes the configuration; what is stored is known by then. */
export type Make = (
  config: VersionedConfig,
  said: ChangeAuthor,
  stored: ConfigRecord | undefined,
) => Promise<ConfigSnapshot>;

/** A change that was written, and what became of it. */
interface ChangeOutcome {
  readonly revision: number;
  readonly staged: ConfigSnapshot['staged'];
  readonly diff: ConfigDiff;
  readonly answer: FleetAnswer;
  /** The revision that took back a change which every process had refused. */
  readonly takenBack?: number;
  /** Or could not be, for this reason. */
  readonly notTakenBack?: string;
}

/** Changes the configuration as a visitor, without layers of its own, and prints the outcome. */
export function changeFleet(values: WriteValues, output: Output, make: Make): Promise<number> {
  const said = {
    by: values.by ?? yourName(),
    expectedRevision: wholeOption('--expected', values.expected),
  };
  return withStore(values, async ({ config: store, clock }) => {
    const warn = (text: string) => output.error(text);
    const report = { info: () => undefined, warn, error: warn };
    const nodeId = `weir-${newIncarnation()}`;
    const consumers = [await RunningQuotas.of(store)];
    const fleet = new VersionedConfig({ store, clock, nodeId, report, consumers, isVisitor: true });
    try {
      await fleet.start();
      const { revision, staged } = await make(fleet, said, await readStored(store));
      const [record, before] = await lastTwo(store, revision);
      const changes = diffOf(record, before);
      const answer = await answerOfFleet(store, clock, revision);
      const isKept = values.keep || !isRefusedByAll(answer);
      const back = isKept ? {} : await takeBack(fleet, said.by, revision, record, before);
      const outcome = { revision, staged, diff: changes, answer, ...back };
      if (values.json) output.log(inJson(outcome));
      else tell(outcome, record, before, output);
      return answer.refused.length === 0 ? DONE : FAILED;
    } finally {
      await fleet.close();
    }
  });
}

async function lastTwo(
  store: ConfigStore,
  revision: number,
): Promise<readonly (ConfigRecord | undefined)[]> {
  const history = await store.history(LOOK_BACK);
  const at = history.findIndex((record) => record.revision === revision);
  return at < 0 ? [] : [history[at], history[at + 1]];
}

/** So many others may have written meanwhile. */
const LOOK_BACK = 50;

/** The changes of a revision, or those of the update that it stages. */
function diffOf(record: ConfigRecord | undefined, before: ConfigRecord | undefined): ConfigDiff {
  if (record?.kind === 'stage' && record.about) return changesBy(record, record.about.id);
  return diff(documentIn(before), documentIn(record));
}

async function takeBack(
  fleet: VersionedConfig,
  by: string,
  revision: number,
  record: ConfigRecord | undefined,
  before: ConfigRecord | undefined,
): Promise<Pick<ChangeOutcome, 'takenBack' | 'notTakenBack'>> {
  const options = { by, expectedRevision: revision };
  try {
    if (record?.kind === 'stage') {
      return { takenBack: (await fleet.cancel(revision, options)).revision };
    }
    if (before === undefined) return { notTakenBack: 'there is no revision before it' };
    return { takenBack: (await fleet.rollback(before.revision, options)).revision };
  } catch (error) {
    if (!(error instanceof ConfigConflictError)) throw error;
    return { notTakenBack: `somebody has written revision ${error.actualRevision} meanwhile` };
  }
}

function inJson({ answer: { refused, silent }, ...outcome }: ChangeOutcome): string {
  return asJson({ ...outcome, refused, silent });
}

function tell(
  outcome: ChangeOutcome,
  record: ConfigRecord | undefined,
  before: ConfigRecord | undefined,
  output: Output,
): void {
  const { revision, diff: changes, answer, takenBack, notTakenBack } = outcome;
  const refusal = refusalIn(answer);
  const verdict = refusal === undefined ? '' : ', which was refused:';
  output.log(`revision ${revision}${whatOf(record)}${verdict}`);
  if (record?.kind !== 'cancel') tellDiff(changes, output);
  for (const line of tellWaiting(record, before)) output.log(line);
  const { nodes, silent } = answer;
  if (silent.length > 0) {
    output.log(
      `${silent.length} of ${processes(nodes)} said nothing of it yet: weir status shows who has`,
    );
  }
  if (refusal === undefined) return;
  output.error(refusal);
  if (takenBack !== undefined) {
    return output.error(`taken back by revision ${takenBack}: all is as before (--keep leaves it)`);
  }
  if (notTakenBack !== undefined) output.error(`not taken back: ${notTakenBack}`);
  const kept = Math.max(...answer.refused.map((node) => node.revision));
  const way = record?.kind === 'stage' ? `cancel ${revision}` : `rollback ${kept}`;
  if (kept > 0) output.error(`take it back with: weir config ${way}`);
}

function whatOf(record: ConfigRecord | undefined): string {
  const { kind, about } = record ?? {};
  if (about === undefined) return '';
  if (kind === 'cancel')
    return `: update ${about.id} for ${isoTime(about.effectiveAtMs)} is cancelled`;
  const way = `weir config cancel ${about.id} takes it back until then`;
  return ` takes effect at ${isoTime(about.effectiveAtMs)}; ${way}`;
}

/** The effect of a rollback on staged updates. */
function tellWaiting(record: ConfigRecord | undefined, before: ConfigRecord | undefined): string[] {
  if (record?.kind !== 'rollback') return [];
  const [was, is] = [before?.staged ?? [], record.staged];
  const missing = (from: typeof was, those: typeof was): typeof was =>
    from.filter(({ id }) => those.every((one) => one.id !== id));
  const named = ({ id, effectiveAtMs }: StagedUpdate): string =>
    `update ${id} for ${isoTime(effectiveAtMs)}`;
  return [
    ...missing(was, is).map((update) => `${named(update)} is cancelled`),
    ...missing(is, was).map((update) => `${named(update)} waits again`),
  ];
}

export function yourName(): string {
  try {
    return userInfo().username;
  } catch {
    return 'weir';
  }
}

/** The answers of the running processes to a revision. */
export interface FleetAnswer {
  readonly nodes: number;
  readonly refused: readonly NodeAck[];
  /** Nodes without an answer yet: cut off, busy, or gone. */
  readonly silent: readonly NodeAck[];
}

/** A node answers 20 ms after the change, or after its next poll if it has missed it. */
const PATIENCE_MS = 1000;
const PAUSE_MS = 25;

const NOBODY: FleetAnswer = { nodes: 0, refused: [], silent: [] };

/** Waits a moment for all nodes; the revision stays, whatever they answer. */
export async function answerOfFleet(
  store: ConfigStore,
  clock: Clock,
  revision: number,
): Promise<FleetAnswer> {
  const until = clock.now() + PATIENCE_MS * 1000;
  try {
    for (;;) {
      const answer = answerIn(await store.acknowledgements(), revision);
      if (answer.silent.length === 0 || clock.now() >= until) return answer;
      await new Promise<void>((resolve) => clock.after(PAUSE_MS, resolve));
    }
  } catch (error) {
    if (error instanceof StoreUnavailableError) return NOBODY;
    throw error;
  }
}

function answerIn(nodes: readonly NodeAck[], wanted: number): FleetAnswer {
  const isSilent = ({ revision, about = 0 }: NodeAck): boolean =>
    Math.max(revision, about) < wanted;
  const isRefusal = ({ status, about }: NodeAck): boolean =>
    status === 'refused' && about === wanted;
  return {
    nodes: nodes.length,
    refused: nodes.filter(isRefusal),
    silent: nodes.filter(isSilent),
  };
}

/** Undefined if none has refused it. */
export function refusalIn({ nodes, refused }: FleetAnswer): string | undefined {
  if (refused.length === 0) return undefined;
  const reasons = [...new Set(refused.map(({ reason }) => reason ?? 'it does not say why'))];
  const isOne = refused.length === 1;
  return [
    `refused by ${refused.length} of ${processes(nodes)}, which ${isOne ? 'stays' : 'stay'} on what was:`,
    ...reasons.map((reason) => `  ${reason}`),
  ].join('\n');
}

/** Where no process runs, none has refused it. */
export const isRefusedByAll = ({ nodes, refused }: FleetAnswer): boolean =>
  nodes > 0 && refused.length === nodes;

export const processes = (count: number): string =>
  count === 1 ? '1 process' : `${count} processes`;
