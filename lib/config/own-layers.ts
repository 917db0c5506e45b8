import {
  type ConfigLayers,
  type ConfigRecord,
  type JsonObject,
  type VersionedLayer,
} from '../stores/config-store.js';
import {
  clashes,
  layerOf,
  NO_LAYERS,
  saysTheSame,
  decidePublish,
  withLayer,
  type LayerName,
} from './layers.js';
import { type OwnLayer } from './rate-limit-config.js';
import { type Report } from '../common/report.js';
import { checkLayer } from './schema/check.js';

const NAMES: readonly LayerName[] = ['code', 'file'];

/** The layers as a process that starts, or whose file has changed, would have them. */
export interface Publication {
  readonly layers: ConfigLayers;
  readonly kind: LayerName;
  /** Warnings to log once it is published. */
  readonly warnings: readonly string[];
}

/**
 * The layers of this process. Each is put before the fleet once, when the process starts
 * or the file changes: what becomes of it then is not disputed again.
 */
export class OwnLayers {
  private readonly layers = new Map<LayerName, VersionedLayer>();
  /** The last layers of the fleet that were equal to this process's. */
  private readonly known = new Map<LayerName, VersionedLayer>();
  private readonly pending = new Set<LayerName>();

  constructor(
    private readonly service: string,
    private readonly report: Report,
  ) {}

  /** Without a layer the process has no opinion about it. Throws if its form is wrong. */
  set(name: LayerName, layer: OwnLayer | undefined): void {
    if (layer === undefined) return;
    const document =
      layer.document && (checkLayer(layer.document, { allowEmpty: true, name }) as JsonObject);
    this.layers.set(name, { document, version: layer.version ?? null });
    this.pending.add(name);
  }

  /** All of it, as if there were no fleet. */
  all(): ConfigLayers {
    return this.over(NO_LAYERS, NAMES);
  }

  /** The layers to publish over the stored ones, if any; a layer that is not published is settled. */
  publication(stored: ConfigLayers): Publication | undefined {
    const names: LayerName[] = [];
    const warnings: string[] = [];
    for (const name of NAMES.filter((one) => this.pending.has(one))) {
      const own = this.layers.get(name)!;
      const held = layerOf(stored, name, this.service);
      const { publish, warning } = decidePublish(name, own, held);
      if (saysTheSame(own, held)) this.known.set(name, held);
      if (publish) names.push(name);
      else this.pending.delete(name);
      if (warning === undefined) continue;
      if (!publish) this.report.warn(warning);
      else if (!this.isKnown(name, held)) warnings.push(warning);
    }
    if (names.length === 0) return undefined;
    const layers = this.over(stored, names);
    if (names.includes('code')) warnings.push(...clashes(layers, this.service));
    return { layers, kind: names[0]!, warnings };
  }

  published({ warnings }: Publication): void {
    for (const name of this.pending) this.known.set(name, this.layers.get(name)!);
    this.pending.clear();
    for (const warning of warnings) this.report.warn(warning);
  }

  /** It does not go together with what the fleet has. */
  withdrawn(reason: string): void {
    const names = [...this.pending].join(' and ');
    this.pending.clear();
    this.report.error(`the ${names} layer of this process was not published: ${reason}`);
  }

  /**
   * Only a store that was lost and written anew can have put aside a layer of ours that held: then
   * it was this process that changed it last, and publishes it again.
   */
  restored(before: ConfigRecord | undefined, now: ConfigRecord): void {
    if (before === undefined || now.kind !== 'restore') return;
    for (const [name, own] of this.layers) {
      const held = saysTheSame(own, layerOf(before, name, this.service));
      if (held && !saysTheSame(own, layerOf(now, name, this.service))) this.pending.add(name);
    }
  }

  /** An edited file replaces its own earlier content, not the layer of another process. */
  private isKnown(name: LayerName, held: VersionedLayer): boolean {
    const known = this.known.get(name);
    return known !== undefined && saysTheSame(known, held);
  }

  private over(layers: ConfigLayers, names: readonly LayerName[]): ConfigLayers {
    return names.reduce((joined, name) => {
      const own = this.layers.get(name);
      return own === undefined ? joined : withLayer(joined, name, this.service, own);
    }, layers);
  }
}
