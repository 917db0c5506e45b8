import { libraryVersion } from './library-version.js';
import { type ConfigLayers, type ConfigRecord } from '../stores/index.js';
import { deepFreeze, effective, hashOf, NORMAL_PROFILE } from './document/index.js';
import { joined } from './layers.js';
import { type ConfigSnapshot } from './rate-limit-config.js';
import { checkDocument, type CheckOptions, type ConfigDocument } from './schema/index.js';

/** What follows from layers; throws an InvalidConfigError if that is not valid as a whole. */
export function snapshotOf(
  layers: ConfigLayers,
  revision: number,
  options: CheckOptions = { allowEmpty: true },
): ConfigSnapshot {
  return snapshot(effective(checkDocument(joined(layers), options)), revision);
}

/** Names the rules of this library: each version has its own. Empty if the version is not known. */
export const RULES = libraryVersion();

/**
 * What follows from a record. The rules were applied when it was written: if they are the same ones,
 * and the hash says that it is the same document, the outcome is known.
 */
export function snapshotOfRecord(record: ConfigRecord): ConfigSnapshot {
  const { revision, rules, hash } = record;
  if (rules !== undefined && rules === RULES && RULES !== '') {
    const next = snapshot(effective(joined(record)), revision);
    if (next.hash === hash) return next;
  }
  return snapshotOf(record, revision);
}

function snapshot(document: ConfigDocument, revision: number): ConfigSnapshot {
  const profile = document.profile ?? NORMAL_PROFILE;
  return Object.freeze({
    ...{ revision, profile },
    document: deepFreeze(document),
    hash: hashOf(document),
  });
}
