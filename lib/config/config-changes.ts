import { InvalidConfigError } from '../common/errors.js';
import {
  type ConfigDraft,
  type ConfigLayers,
  type RevisionKind,
  type StagedName,
  type StagedUpdate,
} from '../stores/config-store.js';
import { type AppliedConfig } from './applied-config.js';
import { ConfigConflictError, ConfigRefusedError } from './config-errors.js';
import { MOST_RACES, type ConfigSync } from './config-sync.js';
import { type ConfigSnapshot, type RollbackOptions } from './rate-limit-config.js';
import { snapshotOf } from './snapshot.js';
import { prospects } from './staged-updates.js';

/** The state that a change is made to. */
export interface ChangeBase {
  readonly layers: ConfigLayers;
  readonly staged: readonly StagedUpdate[];
  /** The revision that it would have. */
  readonly revision: number;
  /** On the store's clock. */
  readonly nowMs: number;
}

/** The state that a change makes of it. */
export interface ChangeResult {
  readonly kind: RevisionKind;
  readonly layers: ConfigLayers;
  readonly staged: readonly StagedUpdate[];
  readonly about?: StagedName;
}

export interface Change {
  readonly allowEmpty: boolean;
  readonly options: RollbackOptions;
  /** Throws if there is no way. */
  over(base: ChangeBase): ChangeResult;
}

/**
 * Writes changes to what is stored. The result is checked as a whole first, by this process for all;
 * and if another process was faster, the change is made to its revision.
 */
export class ConfigChanges {
  constructor(
    private readonly sync: ConfigSync,
    private readonly applied: AppliedConfig,
  ) {}

  async write(change: Change): Promise<ConfigSnapshot> {
    for (let races = 0; races < MOST_RACES; races++) {
      await this.sync.run();
      const candidate = this.candidateOf(change);
      if (await this.sync.change(candidate.draft))
        return this.written(candidate.next, candidate.draft);
    }
    throw new ConfigConflictError(change.options.expectedRevision ?? 0, this.sync.revision);
  }

  /** The change as it would be written, and the snapshot that follows from it. */
  private candidateOf(change: Change): { draft: ConfigDraft; next: ConfigSnapshot } {
    const { options } = change;
    this.mustBeExpected(options);
    const { layers, staged, nextRevision: revision, nowMs } = this.sync;
    const result = change.over({ layers, staged, revision, nowMs });
    const allowEmpty = change.allowEmpty || result.kind === 'stage';
    const known = this.applied.snapshot;
    const next = snapshotOf(result.layers, revision, { allowEmpty, known });
    this.mustFit(next);
    if (result.kind === 'stage') this.mustFitThen(result, revision);
    const fields = { by: options.by, staged: result.staged, about: result.about };
    return { next, draft: this.sync.draft(result.layers, result.kind, next.hash, fields) };
  }

  private written(next: ConfigSnapshot, { staged }: ConfigDraft): ConfigSnapshot {
    const { revision } = this.sync;
    return Object.freeze({ ...next, revision, ...(staged.length > 0 && { staged }) });
  }

  private mustBeExpected({ expectedRevision }: RollbackOptions): void {
    const { revision } = this.sync;
    if (expectedRevision === undefined || expectedRevision === revision) return;
    throw new ConfigConflictError(expectedRevision, revision);
  }

  private mustFit(next: ConfigSnapshot): void {
    try {
      this.applied.prepare(next);
    } catch (error) {
      throw error instanceof InvalidConfigError ? error : new ConfigRefusedError(error);
    }
  }

  /** A staged update is checked as it will be, over all updates that come into force before it. */
  private mustFitThen({ layers, staged, about }: ChangeResult, revision: number): void {
    const known = this.applied.snapshot;
    const all = prospects(layers, staged, (then, { allowEmpty }) => {
      this.mustFit(snapshotOf(then, revision, { allowEmpty, known }));
    });
    const fault = all.find(({ update }) => update.id === about?.id)?.fault;
    if (fault !== undefined) throw fault as Error;
  }
}
