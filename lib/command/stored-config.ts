import {
  checkDocument,
  checkLayer,
  effective,
  snapshotOf,
  spanOf,
  UnknownRevisionError,
  type ConfigDocument,
} from '../config/index.js';
import { NO_LAYERS, patched } from '../config/layers.js';
import { MOST_REVISIONS, type ConfigRecord, type ConfigStore } from '../stores/index.js';
import { CommandFailedError } from './errors.js';
import { readDocument } from './read-document.js';

/** What is stored, and which of it holds at the moment. */
export interface Stored {
  readonly holding: ConfigRecord | undefined;
  /** A revision that waits for its time. */
  readonly waiting: ConfigRecord | undefined;
}

export async function readStored(store: ConfigStore): Promise<Stored> {
  const { current, previous, damage, nowMs, revision } = await store.read();
  if (damage !== undefined) {
    throw new CommandFailedError(`revision ${revision} cannot be read: ${damage}`);
  }
  const isWaiting = current !== undefined && current.effectiveAtMs > nowMs;
  return isWaiting
    ? { holding: previous, waiting: current }
    : { holding: current, waiting: undefined };
}

/** The document of a record with its profile in force; an empty one where there is no record. */
export function documentIn(record: ConfigRecord | undefined): ConfigDocument {
  return record === undefined ? {} : snapshotOf(record, record.revision).document;
}

/** A number names a revision, everything else a file. */
export const isRevision = (word: string): boolean => /^\d{1,15}$/.test(word);

export async function documentNamed(store: ConfigStore, word: string): Promise<ConfigDocument> {
  if (!isRevision(word)) return effective(checkDocument(await readDocument(word), { name: word }));
  const history = await store.history(MOST_REVISIONS);
  const record = history.find(({ revision }) => revision === Number(word));
  if (record === undefined) throw new UnknownRevisionError(Number(word), spanOf(history));
  return documentIn(record);
}

/** What would hold if the file were set as a patch. */
export async function laidOver(
  holding: ConfigRecord | undefined,
  file: string,
): Promise<ConfigDocument> {
  const patch = checkLayer(await readDocument(file), { allowEmpty: true, name: file });
  const revision = (holding?.revision ?? 0) + 1;
  return snapshotOf(patched(holding ?? NO_LAYERS, patch), revision, { name: file }).document;
}
