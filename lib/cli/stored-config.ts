import { spanOf, UnknownRevisionError } from '../config/config-errors.js';
import { diff, type ConfigDiff } from '../config/document/diff.js';
import { effective } from '../config/document/effective.js';
import { checkDocument, checkLayer } from '../config/schema/check.js';
import { type ConfigDocument } from '../config/schema/document.schema.js';
import { snapshotOf } from '../config/snapshot.js';
import { prospects, type Prospect } from '../config/staged-updates.js';
import { NO_LAYERS, patched } from '../config/layers.js';
import {
  type ConfigLayers,
  type ConfigRecord,
  type ConfigStore,
  MOST_REVISIONS,
} from '../stores/config-store.js';
import { CommandFailedError } from './command.js';
import { readDocument } from './documents.js';
import { RestartNeededError } from '../common/errors.js';
import { type ConfigConsumer, type ConfigSnapshot } from '../config/rate-limit-config.js';
import { limitsOf } from '../config/schema/limits-of.js';
import { checkQuota } from '../limiter/quota-options.js';

/** The record that is stored, if there is one. */
export async function readStored(store: ConfigStore): Promise<ConfigRecord | undefined> {
  const { current, damage, revision } = await store.read();
  if (damage === undefined) return current;
  throw new CommandFailedError(`revision ${revision} cannot be read: ${damage}`);
}

/** The document of a record with its profile in force; an empty one where there is no record. */
export function documentIn(record: ConfigRecord | undefined): ConfigDocument {
  return record === undefined ? {} : snapshotOf(record, record.revision).document;
}

export interface Foreseen extends Prospect {
  readonly changes: ConfigDiff;
}

/** The changes of the staged updates, each over those before it; none for one that does not fit. */
export function prospectsOf(record: ConfigRecord): Foreseen[] {
  let before: ConfigLayers = record;
  const all = prospects(record, record.staged, (layers, { allowEmpty }) => {
    snapshotOf(layers, record.revision, { allowEmpty });
  });
  return all.map((one) => {
    const changes = diff(documentOfLayers(before), documentOfLayers(one.layers));
    before = one.layers;
    return { ...one, changes };
  });
}

export function changesBy(record: ConfigRecord, id: number): ConfigDiff {
  const found = prospectsOf(record).find(({ update }) => update.id === id);
  return found?.changes ?? { added: [], removed: [], changed: [] };
}

const documentOfLayers = (layers: ConfigLayers): ConfigDocument => snapshotOf(layers, 0).document;

/** A number names a revision, everything else a file. */
export const isRevision = (word: string): boolean => /^\d{1,15}$/.test(word);

export async function documentNamed(store: ConfigStore, word: string): Promise<ConfigDocument> {
  if (!isRevision(word)) return effective(checkDocument(await readDocument(word), { name: word }));
  const history = await store.history(MOST_REVISIONS);
  const record = history.find(({ revision }) => revision === Number(word));
  if (record === undefined) throw new UnknownRevisionError(Number(word), spanOf(history));
  return documentIn(record);
}

/** The document that would follow if the file were set as a patch. */
export async function laidOver(
  holding: ConfigRecord | undefined,
  file: string,
): Promise<ConfigDocument> {
  const patch = checkLayer(await readDocument(file), { allowEmpty: true, name: file });
  const revision = (holding?.revision ?? 0) + 1;
  return snapshotOf(patched(holding ?? NO_LAYERS, patch), revision, { name: file }).document;
}

/** A process that is further behind refuses everything, whatever is written. */
const LOOK_BACK = 50;

/**
 * The clusters whose quota the running processes keep; undefined stands for those without a quota,
 * who take any. A process has it from its start, so what suits none of them would be refused by all.
 */
export class RunningQuotas implements ConfigConsumer {
  private constructor(private readonly ids: ReadonlySet<string | undefined>) {}

  static async of(store: ConfigStore): Promise<RunningQuotas> {
    const revisions = new Set((await store.acknowledgements()).map(({ revision }) => revision));
    if (revisions.size === 0) return new RunningQuotas(new Set());
    const history = await store.history(LOOK_BACK);
    const applied = history.filter(({ revision }) => revisions.has(revision));
    return new RunningQuotas(new Set(applied.map((record) => clusterIdIn(documentIn(record)))));
  }

  /** The error of the processes; undefined if one of them could follow, or none runs. */
  objectionTo(document: ConfigDocument): RestartNeededError | undefined {
    const id = clusterIdIn(document);
    if (this.ids.size === 0 || this.ids.has(id)) return undefined;
    const known = [...this.ids].filter((one) => one !== undefined).sort();
    if (id === undefined) return new RestartNeededError('quota', undefined, 'a quota');
    if (known.length === 0) return undefined;
    const wanted = known.map((one) => `"${one}"`).join(' or ');
    return new RestartNeededError('quota.clusterId', id, wanted);
  }

  /** The stored revision is not disputed: it may be the one to take back. */
  prepare({ document }: ConfigSnapshot, previous: ConfigSnapshot | undefined): () => void {
    const objection = previous && this.objectionTo(document);
    if (objection !== undefined) throw objection;
    return () => {};
  }
}

function clusterIdIn(document: ConfigDocument): string | undefined {
  const { quota } = limitsOf(document);
  return quota && checkQuota(quota).clusterId;
}
