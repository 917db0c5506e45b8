import { errorText, StoreUnavailableError } from '../common/errors.js';
import { randomUUID } from 'node:crypto';
import { type Clock } from '../common/clock.js';
import {
  type ConfigDraft,
  type ConfigLayers,
  type ConfigRecord,
  type ConfigStore,
  HIGHEST_REVISION,
  type RevisionKind,
  shortened,
  type StagedUpdate,
  type StoredConfig,
  type WrittenConfig,
} from '../stores/config-store.js';
import { type AppliedConfig } from './applied-config.js';
import { NO_LAYERS } from './layers.js';
import { type OwnLayers } from './own-layers.js';
import { type ConfigSnapshot } from './rate-limit-config.js';
import { snapshotOf } from './snapshot.js';
import { laidOver, nameOf } from './staged-updates.js';
import { type StoreTime } from './store-time.js';

/** Each lost race means that another process got through. After so many the next poll goes on. */
export const MOST_RACES = 16;

/** Time for which others may bring a configuration into force that a part of this process cannot work with. */
export const GRACE_MS = 1000;
/** And so long a tool leaves it to the processes that run. */
const VISITOR_GRACE_MS = 2000;

/** The fields of a draft beside its layers; `staged` stays as it is unless given. */
type DraftFields = Partial<
  Pick<ConfigDraft, 'by' | 'effectiveAtMs' | 'staged' | 'about' | 'reason'>
>;

/** Something to be written, and what to do when it is. */
interface Intent {
  readonly draft: ConfigDraft;
  readonly written?: () => void;
}

/**
 * Brings this process and the store to the same revision: what the store has is adopted, what this
 * process brings along is published, and what the store has lost is written again. One call at a
 * time.
 */
export class ConfigSync {
  /** The newest record that was read from the store or written to it by this process. */
  private newest: ConfigRecord | undefined;
  private stored = 0;
  /** Whether the last look found orders. */
  hasOrders = false;
  /** The highest revision that others have mentioned. */
  private heardOf = 0;
  /** The same when the last look began: what it finds is no older. */
  private heardBefore = 0;

  constructor(
    private readonly store: ConfigStore,
    private readonly applied: AppliedConfig,
    private readonly own: OwnLayers,
    private readonly time: StoreTime,
    private readonly clock: Pick<Clock, 'now'>,
    private readonly nodeId: string,
    private readonly isVisitor = false,
  ) {}

  /** The revision that is stored, as of the last look. */
  get revision(): number {
    return this.stored;
  }

  /** The layers that a change is made to. */
  get layers(): ConfigLayers {
    return this.newest ?? this.own.all();
  }

  /** Updates that wait for their time, in order of time. */
  get staged(): readonly StagedUpdate[] {
    return this.newest?.staged ?? [];
  }

  /** The revision that a change would have. */
  get nextRevision(): number {
    return Math.max(this.stored, this.above) + 1;
  }

  get nowMs(): number {
    return this.time.nowMs();
  }

  private get above(): number {
    return Math.max(this.newest?.revision ?? 0, this.heardOf);
  }

  /**
   * Others, such as the ledger of the quota, keep the revision too. Whether it is worth a look: only
   * once for each, as a revision that is gone would be mentioned again and again.
   */
  noticed(revision: number): boolean {
    if (!(revision > this.heardOf && revision <= HIGHEST_REVISION)) return false;
    this.heardOf = revision;
    return revision > this.stored;
  }

  async run(): Promise<void> {
    for (let races = 0; races < MOST_RACES;) {
      const intent = this.intentOn(await this.read());
      if (intent === undefined) return;
      if (await this.change(intent.draft)) intent.written?.();
      else races++;
    }
  }

  /** Writes a draft over the stored revision; false if another process was faster. */
  async change(draft: ConfigDraft): Promise<boolean> {
    const answer = await writeOnce(this.store, draft, this.stored, this.above);
    if (!answer.written) return false;
    const { revision, nowMs: atMs } = answer;
    this.stored = revision;
    this.learn({ ...draft, revision, atMs });
    return true;
  }

  draft(
    { code, file, patch }: ConfigLayers,
    kind: RevisionKind,
    hash: string,
    { by = this.nodeId, effectiveAtMs = 0, staged = this.staged, about, reason }: DraftFields = {},
  ): ConfigDraft {
    return {
      ...{ id: randomUUID(), kind, by, effectiveAtMs, hash },
      ...(about !== undefined && { about }),
      ...(reason !== undefined && { reason: shortened(reason) }),
      ...{ staged, code, file, patch },
    };
  }

  private async read(): Promise<StoredConfig> {
    const sent = this.clock.now();
    this.heardBefore = this.heardOf;
    const stored = await this.store.read(this.newest?.id);
    this.time.observe(sent, stored.nowMs);
    this.stored = stored.revision;
    this.hasOrders = stored.hasOrders ?? false;
    return stored;
  }

  /** Adopts the stored record, and returns the draft that has to be written, if any. */
  private intentOn(stored: StoredConfig): Intent | undefined {
    if (this.isLost(stored)) return this.restoring(stored);
    if (stored.damage !== undefined) return this.refuse(stored, stored.damage);
    this.learn(stored.current, stored.previous);
    return this.settling(stored.nowMs) ?? this.publishing();
  }

  private learn(current?: ConfigRecord, previous?: ConfigRecord): void {
    if (current === undefined) return;
    this.own.restored(this.newest, current);
    this.newest = current;
    this.applied.adopt(current, previous);
  }

  /**
   * Brings the first update into force whose time has come by the store's own clock. All processes
   * try, and the store takes it from one. What is not valid by then is dropped at once; what only a
   * part of this process cannot work with is left to others for a moment, who may have no such part.
   */
  private settling(nowMs: number): Intent | undefined {
    const [due, ...staged] = this.staged;
    if (due === undefined || due.effectiveAtMs > nowMs) return undefined;
    const overdueMs = nowMs - due.effectiveAtMs;
    if (this.isVisitor && overdueMs < VISITOR_GRACE_MS) return undefined;
    const { by, effectiveAtMs, allowEmpty } = due;
    const [known, about] = [this.applied.snapshot, nameOf(due)];
    let next: ConfigSnapshot | undefined;
    try {
      const layers = laidOver(this.layers, due);
      next = snapshotOf(layers, this.nextRevision, { allowEmpty, known });
      this.applied.prepare(next);
      return {
        draft: this.draft(layers, 'update', next.hash, { by, effectiveAtMs, staged, about }),
      };
    } catch (error) {
      if (next !== undefined && overdueMs < GRACE_MS) return undefined;
      const fields = { staged, about, reason: errorText(error) };
      return { draft: this.draft(this.layers, 'drop', this.newest!.hash, fields) };
    }
  }

  /** Revisions only grow: a lower one, or another of the same number, was written after a loss. */
  private isLost({ revision, unchanged, current }: StoredConfig): boolean {
    if (this.newest === undefined) return false;
    if (revision < this.heardBefore) return true;
    if (unchanged) return false;
    if (revision !== this.newest.revision) return revision < this.newest.revision;
    return current !== undefined && current.id !== this.newest.id;
  }

  private restoring({ revision }: StoredConfig): Intent {
    const newest = this.newest!;
    const reason =
      revision === 0 ? 'the store came back empty' : `the store is at revision ${revision}`;
    this.applied.refuse({ revision: newest.revision, kind: 'lost', reason });
    const used = this.applied.record ?? newest;
    return { draft: this.draft(used, 'restore', used.hash) };
  }

  private publishing(): Intent | undefined {
    const publication = this.own.publication(this.newest ?? NO_LAYERS);
    if (publication === undefined) return undefined;
    const { layers, kind } = publication;
    try {
      const known = this.applied.snapshot;
      const next = snapshotOf(layers, this.stored + 1, { allowEmpty: true, known });
      this.applied.prepare(next);
      const draft = this.draft(layers, kind, next.hash);
      return { draft, written: () => this.own.published(publication) };
    } catch (error) {
      this.own.withdrawn(errorText(error));
      this.applied.refuseOwn('invalid', error);
      return undefined;
    }
  }

  /** A process without any revision takes the one before the damaged one. */
  private refuse({ revision, previous }: StoredConfig, reason: string): undefined {
    if (previous !== undefined && this.newest === undefined) this.learn(previous);
    this.applied.refuse({ revision, kind: 'unreadable', reason });
  }
}

/** Revisions that others may have written before a lost answer is looked into. */
const LOOK_BACK = 50;

/**
 * Writes a draft once. If the answer is lost, the history tells what became of it; if it is not
 * there, the same draft is sent again, which a store never takes twice.
 */
export async function writeOnce(
  store: ConfigStore,
  draft: ConfigDraft,
  expectedRevision: number,
  above: number,
): Promise<WrittenConfig> {
  try {
    return await store.write(draft, expectedRevision, above);
  } catch (error) {
    if (!(error instanceof StoreUnavailableError)) throw error;
    const found = (await store.history(LOOK_BACK)).find(({ id }) => id === draft.id);
    if (found !== undefined) {
      return { written: true, revision: found.revision, nowMs: found.atMs };
    }
    return store.write(draft, expectedRevision, above);
  }
}
