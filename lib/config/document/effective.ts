import { type ConfigDocument } from '../schema/document.schema.js';
import { isObject, own } from './json.js';
import { mergePatch } from './merge-patch.js';

/** The profile of a document that names none: the document as it stands. */
export const NORMAL_PROFILE = 'normal';

/** The document with its active profile, or the one named, laid on top. */
export function effective(
  document: ConfigDocument,
  profile: string = document.profile ?? NORMAL_PROFILE,
): ConfigDocument {
  const { profiles } = document;
  const overlay = isObject(profiles) ? own(profiles, profile) : undefined;
  return isObject(overlay) ? (mergePatch(document, overlay) as ConfigDocument) : document;
}
