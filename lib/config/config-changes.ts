import { InvalidConfigError } from '../common/errors.js';
import { type ConfigDraft, type ConfigLayers, type RevisionKind } from '../stores/index.js';
import { type AppliedConfig } from './applied-config.js';
import { ConfigConflictError, ConfigRefusedError, ConfigStagedError } from './config-errors.js';
import { MOST_RACES, type ConfigSync } from './config-sync.js';
import { type ConfigSnapshot, type RollbackOptions } from './rate-limit-config.js';
import { snapshotOf } from './snapshot.js';

/** A change to be written: its layers, and what is said of them. */
export interface Change {
  readonly kind: RevisionKind;
  readonly effectiveAtMs: number;
  readonly allowEmpty: boolean;
  readonly options: RollbackOptions;
  layersOver(layers: ConfigLayers): ConfigLayers;
  /** Throws if it is wrong in itself, whatever it is laid over. */
  mustBeSound?(): void;
}

/** A change as it would be written, and what follows from it. */
interface Made {
  readonly draft: ConfigDraft;
  readonly next: ConfigSnapshot;
}

/**
 * Writes changes to what is stored. The result is checked as a whole first, by this process for all;
 * and if somebody else was faster, the change is made to what they wrote.
 */
export class ConfigChanges {
  constructor(
    private readonly sync: ConfigSync,
    private readonly applied: AppliedConfig,
  ) {}

  async write(change: Change): Promise<ConfigSnapshot> {
    const early = this.madeWithoutReading(change);
    if (early !== undefined && (await this.sync.change(early.draft))) {
      return this.written(early.next);
    }
    for (let races = 0; races < MOST_RACES; races++) {
      await this.sync.run();
      const { draft, next } = this.made(change);
      if (await this.sync.change(draft)) return this.written(next);
    }
    throw new ConfigConflictError(change.options.expectedRevision ?? 0, this.sync.revision);
  }

  /**
   * What is known here is nearly always what is stored, and the store takes nothing if it is not.
   * Only a refusal has to be about what is stored: for that it is read.
   */
  private madeWithoutReading(change: Change): Made | undefined {
    try {
      if (this.sync.isCurrent) return this.made(change);
    } catch {
      // Found out below, or once it is read.
    }
    change.mustBeSound?.();
    return undefined;
  }

  private made(change: Change): Made {
    const { kind, effectiveAtMs, allowEmpty, options } = change;
    this.mustBeFree(change);
    const layers = change.layersOver(this.sync.layers);
    const known = this.applied.snapshot;
    const next = snapshotOf(layers, this.sync.revision + 1, { allowEmpty, known });
    this.mustFit(next);
    const { by } = options;
    return { next, draft: this.sync.draft(layers, kind, next.hash, { by, effectiveAtMs }) };
  }

  /** What is not in use yet says so by being staged. */
  private written(next: ConfigSnapshot): ConfigSnapshot {
    const { revision, waiting } = this.sync;
    if (waiting === undefined) return Object.freeze({ ...next, revision });
    const { effectiveAtMs } = waiting;
    return Object.freeze({ ...next, revision, staged: { revision, effectiveAtMs } });
  }

  private mustBeFree({ kind, options: { expectedRevision } }: Change): void {
    const { revision, waiting } = this.sync;
    if (expectedRevision !== undefined && expectedRevision !== revision) {
      throw new ConfigConflictError(expectedRevision, revision);
    }
    if (waiting !== undefined && kind !== 'rollback') {
      throw new ConfigStagedError(waiting.revision, waiting.effectiveAtMs);
    }
  }

  private mustFit(next: ConfigSnapshot): void {
    try {
      this.applied.prepare(next);
    } catch (error) {
      throw error instanceof InvalidConfigError ? error : new ConfigRefusedError(error);
    }
  }
}
