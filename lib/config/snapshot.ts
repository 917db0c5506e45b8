import { deepFreeze } from '../common/immutable.js';
import { type ConfigLayers, type ConfigRecord } from '../stores/config-store.js';
import { hashOf } from './document/json.js';
import { effective, NORMAL_PROFILE } from './document/effective.js';
import { shared } from './document/shared.js';
import { joined } from './layers.js';
import { type ConfigSnapshot, type PastRevision } from './rate-limit-config.js';
import { checkDocument, type CheckOptions } from './schema/check.js';
import { type ConfigDocument } from './schema/document.schema.js';
import { diff } from './document/diff.js';

export interface SnapshotOptions extends CheckOptions {
  /** The snapshot before: parts that are the same are the same objects. */
  readonly known?: ConfigSnapshot | undefined;
}

/** The snapshot of layers; throws an InvalidConfigError if they are not valid as a whole. */
export function snapshotOf(
  layers: ConfigLayers,
  revision: number,
  { allowEmpty = false, name, known }: SnapshotOptions = { allowEmpty: true },
): ConfigSnapshot {
  const joint = whole(layers, known);
  const document = checkDocument(joint, { allowEmpty, name });
  return snapshot(document, revision, known);
}

/** The profile not yet laid on top. */
function whole(layers: ConfigLayers, known: ConfigSnapshot | undefined): ConfigDocument {
  return deepFreeze(shared(known?.document, joined(layers)) as ConfigDocument);
}

function snapshot(
  joint: ConfigDocument,
  revision: number,
  known: ConfigSnapshot | undefined,
): ConfigSnapshot {
  const profile = joint.profile ?? NORMAL_PROFILE;
  const laid = effective(joint);
  const document = laid === joint ? joint : deepFreeze(shared(known?.document, laid));
  return Object.freeze({ revision, profile, document, hash: hashOf(document) });
}

/** Each with what it changed; for that the one before it is needed, so bring one more. */
export function pastRevisions(records: readonly ConfigRecord[], count: number): PastRevision[] {
  const documents = records.map((record) => effective(joined(record) as ConfigDocument));
  return records.slice(0, count).map((record, index) => {
    const isFirst = record.revision === 1;
    const before = isFirst ? {} : documents[index + 1];
    if (before === undefined) return record;
    return { ...record, diff: diff(before, documents[index]) };
  });
}
