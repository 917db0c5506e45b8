import { type ConfigLayers } from '../stores/index.js';
import { deepFreeze, effective, hashOf, NORMAL_PROFILE } from './document/index.js';
import { joined } from './layers.js';
import { type ConfigSnapshot } from './rate-limit-config.js';
import { checkDocument, type CheckOptions } from './schema/index.js';

/** What follows from layers; throws an InvalidConfigError if that is not valid as a whole. */
export function snapshotOf(
  layers: ConfigLayers,
  revision: number,
  options: CheckOptions = { allowEmpty: true },
): ConfigSnapshot {
  const checked = checkDocument(joined(layers), options);
  const document = deepFreeze(effective(checked));
  const profile = checked.profile ?? NORMAL_PROFILE;
  return Object.freeze({ revision, document, profile, hash: hashOf(document) });
}
