/** Plain JSON, as it is kept. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
export interface JsonObject {
  readonly [name: string]: Json;
}

/**
 * Why a revision was written. `stage`, `cancel` and `drop` change nothing but what waits: an update
 * was staged, cancelled, or did not fit any more when its time came.
 */
export type RevisionKind =
  'code' | 'file' | 'update' | 'rollback' | 'restore' | 'stage' | 'cancel' | 'drop';

/** Which update a revision is about that waits, or did. */
export interface StagedName {
  /** The revision with which it was staged. */
  readonly id: number;
  readonly by: string;
  /** When it takes effect, in milliseconds on the store's clock. */
  readonly effectiveAtMs: number;
}

/** An update that waits for its time. */
export interface StagedUpdate extends StagedName {
  /** Laid over what holds then. */
  readonly patch: JsonObject;
  readonly allowEmpty: boolean;
}

/** What one service says. */
export interface VersionedLayer {
  /** Null: that there should be nothing. */
  readonly document: JsonObject | null;
  /** Of two versions the higher one holds. */
  readonly version: number | null;
}

/** Services that share a store have different code: each has a layer of its own. */
export type LayersByService = Readonly<Record<string, VersionedLayer>>;

/** The layers of one configuration, each as it was given. */
export interface ConfigLayers {
  readonly code: LayersByService;
  /** What files, or sources of the users' own, say. */
  readonly file: LayersByService;
  /** All updates, as one merge patch; its nulls delete what lies below. */
  readonly patch: JsonObject;
}

/** A revision as its writer makes it. */
export interface ConfigDraft extends ConfigLayers {
  /** Random: by it a writer whose answer was lost finds out whether it was written. */
  readonly id: string;
  readonly kind: RevisionKind;
  readonly by: string;
  /** When it was staged for, in milliseconds on the store's clock; 0: written when it was made. */
  readonly effectiveAtMs: number;
  /** What still waits, in order of time. */
  readonly staged: readonly StagedUpdate[];
  /** The staged update that this revision stages, cancels, drops or brings into force. */
  readonly about?: StagedName;
  /** Why it was dropped. */
  readonly reason?: string;
  /** Of the document that follows from the layers. */
  readonly hash: string;
}

/** A revision as it is stored: whole, and never changed. */
export interface ConfigRecord extends ConfigDraft {
  readonly revision: number;
  /** When it was written, on the store's clock. */
  readonly atMs: number;
}

export interface StoredConfig {
  /** The revision that is stored; 0 if there is none. */
  readonly revision: number;
  /** The stored record is the one that the reader named: it is not sent again. */
  readonly unchanged: boolean;
  readonly current?: ConfigRecord;
  /** The one before it, for those who cannot use the current one. */
  readonly previous?: ConfigRecord;
  /** What is wrong with the current record, if it cannot be read. */
  readonly damage?: string;
  /** The store's clock. */
  readonly nowMs: number;
  /** Somebody has left an order, for one process of each service to carry out. */
  readonly hasOrders?: boolean;
}

export interface WrittenConfig {
  /** False if the stored revision is not the one that was to be replaced. */
  readonly written: boolean;
  /** The revision that is stored now. */
  readonly revision: number;
  readonly nowMs: number;
}

/** What a node says of itself. */
export interface NodeReport {
  readonly node: string;
  /** The revision it works with; 0: its own code. */
  readonly revision: number;
  readonly status: 'applied' | 'refused';
  /** The revision that was refused; if it works with that one, the update that it has staged. */
  readonly about?: number;
  readonly reason?: string;
  readonly service?: string;
  /** The resources that it knows, for those who name one on the command line. */
  readonly resources?: readonly string[];
  /** Of these, those whose answers it can warm. */
  readonly warms?: readonly string[];
}

/** What a node says of itself beside its revision. */
export type NodeFacts = Pick<NodeReport, 'service' | 'resources' | 'warms'>;

export interface NodeAck extends NodeReport {
  /** When it said so, on the store's clock. */
  readonly atMs: number;
}

/**
 * Where the fleet's configuration is kept: one record, the one before it, a history, and what each
 * node says of it. Whatever it does not answer in time is rejected with a StoreUnavailableError.
 */
export interface ConfigStore {
  /** What is stored; without the records if the current one has the id `known`. */
  read(known?: string): Promise<StoredConfig>;
  /**
   * Replaces the record of that revision (0: none), unless somebody else did. The new revision is
   * one more than the larger of `expectedRevision` and `above`. Sending the same draft again is safe.
   */
  write(draft: ConfigDraft, expectedRevision: number, above?: number): Promise<WrittenConfig>;
  /** The last revisions, newest first. */
  history(count: number): Promise<ConfigRecord[]>;
  /** Notes what a node says; it counts for `ttlMs`. */
  acknowledge(report: NodeReport, ttlMs: number): Promise<void>;
  /** From now on nobody waits for a store that is away. */
  leave(): void;
  /** A node that leaves does not count any longer. */
  withdraw(node: string): Promise<void>;
  acknowledgements(): Promise<NodeAck[]>;
  /**
   * `hint` is called with the number of each revision that is written, or without one when some may
   * have been missed. Hints may be lost, late, doubled or forged: only `read` says what is stored.
   * Resolves to a function that ends it.
   */
  subscribe(hint: (revision?: number) => void): Promise<() => void>;
  close(): Promise<void>;
}
