import { type ConfigLayers, type JsonObject } from '../stores/index.js';
import { hashOf, mergePatch, mergePatches } from './document/index.js';
import { patchBetween } from './patch-between.js';
import { type ConfigLayer } from './schema/index.js';

export type LayerName = 'code' | 'file';

/** One layer as the record has it. */
export interface VersionedLayer {
  readonly document: JsonObject | null;
  readonly version: number | null;
}

/** What a process does with a layer of its own that it finds in the store or does not. */
export interface Verdict {
  readonly publish: boolean;
  readonly warning?: string;
}

export const NO_LAYERS: ConfigLayers = {
  code: null,
  codeVersion: null,
  file: null,
  fileVersion: null,
  patch: {},
};

/** The document that follows from layers, the profile not yet applied. */
export function joined({ code, file, patch }: ConfigLayers): JsonObject {
  return mergePatch(mergePatch(mergePatch({}, code ?? {}), file ?? {}), patch) as JsonObject;
}

/**
 * The layers with one more patch. It is joined to the patches before it, so that what they say also
 * holds over the next code. What two patches in a row can do and one cannot, such as replacing an
 * object, is said field by field.
 */
export function patched(layers: ConfigLayers, patch: ConfigLayer): ConfigLayers {
  const wanted = mergePatch(joined(layers), patch);
  const both = mergePatches(layers.patch, patch) as JsonObject;
  const rest = patchBetween(joined({ ...layers, patch: both }), wanted);
  return { ...layers, patch: mergePatches(both, rest) as JsonObject };
}

/**
 * Layers that amount to what others did. Code and file stay as they are, so that the next process
 * that starts with them does not undo it; if they have changed since, the patch makes up for it.
 */
export function rolledBack(layers: ConfigLayers, to: ConfigLayers): ConfigLayers {
  const isSameBelow =
    saysTheSame(layerOf(layers, 'code'), layerOf(to, 'code')) &&
    saysTheSame(layerOf(layers, 'file'), layerOf(to, 'file'));
  if (isSameBelow) return { ...layers, patch: to.patch };
  const patch = patchBetween(joined({ ...layers, patch: {} }), joined(to)) as JsonObject;
  return { ...layers, patch };
}

export function layerOf(layers: ConfigLayers, name: LayerName): VersionedLayer {
  return name === 'code'
    ? { document: layers.code, version: layers.codeVersion }
    : { document: layers.file, version: layers.fileVersion };
}

export function withLayer(
  layers: ConfigLayers,
  name: LayerName,
  { document, version }: VersionedLayer,
): ConfigLayers {
  return name === 'code'
    ? { ...layers, code: document, codeVersion: version }
    : { ...layers, file: document, fileVersion: version };
}

export const saysTheSame = (a: VersionedLayer, b: VersionedLayer): boolean =>
  hashOf(a.document) === hashOf(b.document);

/**
 * Whether a process that starts, or whose file has changed, replaces the fleet's layer by its own.
 * It is asked once, so that processes of two versions of the code never take turns.
 */
export function verdictOn(name: LayerName, own: VersionedLayer, stored: VersionedLayer): Verdict {
  const [mine, theirs] = [own.version ?? -Infinity, stored.version ?? -Infinity];
  if (saysTheSame(own, stored)) return { publish: mine > theirs };
  if (stored.document === null) return { publish: true };
  if (mine > theirs) return { publish: true };
  if (mine < theirs) return { publish: false, warning: followsHigher(name, own, stored) };
  if (own.version !== null) return { publish: false, warning: sameVersion(name, own.version) };
  return { publish: true, warning: replaces(name) };
}

const WHERE = { code: 'configVersion', file: 'the version in the file' };

function followsHigher(name: LayerName, own: VersionedLayer, stored: VersionedLayer): string {
  const mine = own.version === null ? 'has no version' : `is version ${own.version}`;
  return (
    `the ${name} layer of this process ${mine}, that of the fleet is version ${stored.version}: ` +
    `following the fleet; raise ${WHERE[name]} above ${stored.version} to replace it`
  );
}

function sameVersion(name: LayerName, version: number): string {
  return (
    `the ${name} layer of this process differs from the fleet's, and both are version ${version}: ` +
    `following the fleet; raise ${WHERE[name]} to replace it`
  );
}

function replaces(name: LayerName): string {
  return (
    `the ${name} layer of this process replaces another one of the fleet, as the last to start; ` +
    `set ${WHERE[name]} to decide which one holds`
  );
}
