export { canonicalJson, hashOf } from './canonical.js';
export { diff, isEmptyDiff, type ConfigDiff } from './diff.js';
export { effective, NORMAL_PROFILE } from './effective.js';
export { mergePatch, mergePatches } from './merge-patch.js';
export { shared } from './shared.js';
