import { type ConfigLayers, type JsonObject, type VersionedLayer } from '../stores/config-store.js';
import { hashOf, isObject } from './document/json.js';
import { mergePatch, mergePatches, patchBetween } from './document/merge-patch.js';
import { type ConfigLayer } from './schema/check.js';

export type LayerName = 'code' | 'file';

/** Whether a process publishes a layer of its own. */
export interface PublishDecision {
  readonly publish: boolean;
  readonly warning?: string;
}

/** The layer of a service that has published none. */
const SILENT: VersionedLayer = { document: null, version: null };

export const NO_LAYERS: ConfigLayers = { code: {}, file: {}, patch: {} };

/** The document that follows from layers, the profile not yet applied. */
export function joined({ code, file, patch }: ConfigLayers): JsonObject {
  const documents = [...byName(code), ...byName(file)].map(({ document }) => document ?? {});
  return [...documents, patch].reduce<unknown>(mergePatch, {}) as JsonObject;
}

/** In an order that is the same everywhere. */
function byName(layers: ConfigLayers['code']): VersionedLayer[] {
  return Object.keys(layers)
    .sort()
    .map((service) => layers[service]!);
}

/**
 * The layers with one more patch. It is joined to the patches before it, so that all of them also
 * hold over the next code. Where two patches in a row do more than one can, such as replacing an
 * object, the fields are patched one by one.
 */
export function patched(layers: ConfigLayers, patch: ConfigLayer): ConfigLayers {
  const { code, file } = layers;
  const both = mergePatches(layers.patch, patch) as JsonObject;
  const wanted = mergePatch(joined(layers), patch);
  const rest = patchBetween(joined({ code, file, patch: both }), wanted);
  return { code, file, patch: mergePatches(both, rest) as JsonObject };
}

/**
 * The layers without what updates have set at a path, so that code and file hold there again. Objects that were in the
 * patch for its sake go as well: the next code may have none of them. Undefined if updates have set nothing there.
 */
export function unpatched(layers: ConfigLayers, path: readonly string[]): ConfigLayers | undefined {
  const patch = without(layers.patch, path);
  return patch && { ...layers, patch };
}

function without(patch: JsonObject, [name, ...rest]: readonly string[]): JsonObject | undefined {
  if (name === undefined || !Object.hasOwn(patch, name)) return undefined;
  const { [name]: part, ...others } = patch;
  if (rest.length === 0) return others;
  const left = isObject(part) ? without(part, rest) : undefined;
  return left && (Object.keys(left).length === 0 ? others : { ...others, [name]: left });
}

/**
 * Layers that amount to what others did. Code and file stay as they are, so that the next process
 * that starts with them does not undo it; if they have changed since, the patch makes up for it.
 */
export function rolledBack(layers: ConfigLayers, to: ConfigLayers): ConfigLayers {
  const baseHash = ({ code, file }: ConfigLayers): string => hashOf({ code, file });
  if (baseHash(layers) === baseHash(to)) return { ...layers, patch: to.patch };
  const patch = patchBetween(joined({ ...layers, patch: {} }), joined(to)) as JsonObject;
  return { ...layers, patch };
}

export function layerOf(layers: ConfigLayers, name: LayerName, service: string): VersionedLayer {
  return Object.hasOwn(layers[name], service) ? layers[name][service]! : SILENT;
}

export function withLayer(
  layers: ConfigLayers,
  name: LayerName,
  service: string,
  layer: VersionedLayer,
): ConfigLayers {
  return { ...layers, [name]: { ...layers[name], [service]: layer } };
}

/** Policies that the code of another service defines differently: only one of them can hold. */
export function clashes({ code }: ConfigLayers, service: string): string[] {
  const own = policiesOf(code[service]);
  return Object.keys(code)
    .filter((other) => other !== service)
    .flatMap((other) => {
      const theirs = policiesOf(code[other]);
      const names = Object.keys(own).filter((name) => Object.hasOwn(theirs, name));
      const differing = names.filter((name) => hashOf(own[name]) !== hashOf(theirs[name]));
      const holds = [service, other].sort()[1];
      return differing.map(
        (name) =>
          `the services ${service} and ${other} share this store and do not agree on the policy ` +
          `'${name}': that of ${holds} holds; give one of the policies another name, or this service another store.prefix`,
      );
    });
}

function policiesOf(layer: VersionedLayer | undefined): JsonObject {
  return (layer?.document?.policies ?? {}) as JsonObject;
}

export const saysTheSame = (a: VersionedLayer, b: VersionedLayer): boolean =>
  hashOf(a.document) === hashOf(b.document);

/**
 * Whether a process that starts, or whose file has changed, replaces the fleet's layer by its own.
 * A process decides once, so that processes of two versions of the code never take turns.
 */
export function decidePublish(
  name: LayerName,
  own: VersionedLayer,
  stored: VersionedLayer,
): PublishDecision {
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
    `set ${WHERE[name]} to decide which one holds, or, if that is another service, give this one another store.prefix`
  );
}
