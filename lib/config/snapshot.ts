import { deepFreeze } from '../common/immutable.js';
import { type ConfigLayers, type ConfigRecord } from '../stores/index.js';
import { effective, hashOf, NORMAL_PROFILE, shared } from './document/index.js';
import { joined } from './layers.js';
import { libraryVersion } from './library-version.js';
import { type ConfigSnapshot } from './rate-limit-config.js';
import { checkDocument, type CheckOptions, type ConfigDocument } from './schema/index.js';

export interface SnapshotOptions extends Omit<CheckOptions, 'known'> {
  /** A snapshot from before: what is still the same is taken from it. */
  readonly known?: ConfigSnapshot | undefined;
}

/** What follows from layers; throws an InvalidConfigError if that is not valid as a whole. */
export function snapshotOf(
  layers: ConfigLayers,
  revision: number,
  { allowEmpty = false, name, known }: SnapshotOptions = { allowEmpty: true },
): ConfigSnapshot {
  const joint = whole(layers, known);
  const document = checkDocument(joint, { allowEmpty, name, known: known?.document });
  return snapshot(document, revision, known);
}

/** Names the rules of this library: each version has its own. Empty if the version is not known. */
export const RULES = libraryVersion();

/**
 * What follows from a record. The rules were applied when it was written: if they are the same ones,
 * and the hash says that it is the same document, the outcome is known. `isTold` is true for what its
 * writer has just told on ground that is known here: nobody can have laid hands on it since.
 */
export function snapshotOfRecord(
  record: ConfigRecord,
  known: ConfigSnapshot | undefined,
  isTold: boolean,
): ConfigSnapshot {
  const { revision, rules, hash } = record;
  if (rules !== undefined && rules === RULES && RULES !== '') {
    const next = snapshot(whole(record, known), revision, known, isTold ? hash : undefined);
    if (next.hash === hash) return next;
  }
  return snapshotOf(record, revision, { allowEmpty: true, known });
}

/** The profile not yet laid on top. */
function whole(layers: ConfigLayers, known: ConfigSnapshot | undefined): ConfigDocument {
  return deepFreeze(shared(known?.document, joined(layers)) as ConfigDocument);
}

function snapshot(
  joint: ConfigDocument,
  revision: number,
  known: ConfigSnapshot | undefined,
  hash?: string,
): ConfigSnapshot {
  const profile = joint.profile ?? NORMAL_PROFILE;
  const laid = effective(joint);
  const document = laid === joint ? joint : deepFreeze(shared(known?.document, laid));
  return Object.freeze({ revision, profile, document, hash: hash ?? hashOf(document) });
}
