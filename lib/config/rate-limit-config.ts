import { type Observable } from 'rxjs';
import { type ConfigIssue } from '../common/errors.js';
import { type ConfigUpdate } from '../limiter/events.js';
import { type ConfigRecord, type NodeAck, type StagedUpdate } from '../stores/config-store.js';
import { type ConfigDiff } from './document/diff.js';
import { type ConfigLayer } from './schema/check.js';
import { type ConfigDocument } from './schema/document.schema.js';

/** The configuration at one moment: frozen, and valid as a whole. */
export interface ConfigSnapshot {
  /** 0: the process's own layers, before it knows of any revision. */
  readonly revision: number;
  /** All layers joined, with the active profile laid on top. */
  readonly document: ConfigDocument;
  readonly profile: string;
  /** Of the document; equal documents have equal ones. */
  readonly hash: string;
  /** Updates that wait for their time, on the store's clock, in that order; left out if none does. */
  readonly staged?: readonly StagedUpdate[];
}

/** A configuration that was applied here, with what it changed. */
export interface ConfigChange {
  readonly from: ConfigSnapshot;
  readonly to: ConfigSnapshot;
  readonly diff: ConfigDiff;
  /** The apps that have other figures from now on. */
  readonly updates: readonly ConfigUpdate[];
  /** The author, instant and cause of the revision; not for revision 0, which is written nowhere. */
  readonly record?: ConfigRecord;
}

/** Why the last good configuration stays. */
export interface ConfigRefusal {
  /** 0: what this process brings along, its code or its file. */
  readonly revision: number;
  /** A document that is not valid or cannot be used, a record that cannot be read, a store that has
   * lost what was written, or an update that does not fit what holds when its time comes: then the
   * revision is that with which it was staged. */
  readonly kind: 'invalid' | 'unreadable' | 'lost' | 'staged';
  readonly reason: string;
  readonly error?: unknown;
}

/** A revision of the past, and what it changed, if the one before it is still known. */
export interface PastRevision extends ConfigRecord {
  readonly diff?: ConfigDiff;
}

/**
 * A part of the process that works with the configuration. `prepare` checks and compiles, changes
 * nothing, and may throw: then the revision is refused as a whole. What it returns is called when
 * all parts are prepared, or never; it may not throw.
 */
export interface ConfigConsumer {
  prepare(next: ConfigSnapshot, previous: ConfigSnapshot | undefined): () => void;
}

/** By whom, and over which revision. */
export interface RollbackOptions {
  /** Refuse with a ConfigConflictError unless this is the revision that is stored. */
  readonly expectedRevision?: number;
  /** The author, for the history. Default: the name of the node. */
  readonly by?: string;
}

/** How an update is made: when, by whom, and over which revision. */
export interface UpdateOptions extends RollbackOptions {
  /** When it takes effect, on the store's clock: milliseconds since 1970 or a date. Default: now. */
  readonly effectiveAt?: number | Date;
  /** An update that leaves nothing configured is refused unless this is set. */
  readonly allowEmpty?: boolean;
}

/** How `validate` takes its input. */
export interface ValidateOptions {
  /** Whether the input is laid over the current configuration, or is all of it. */
  readonly as?: 'patch' | 'document';
}

/**
 * The configuration that the whole fleet works with, and the way to change it while it runs.
 *
 * All processes apply the same document, whatever their own code has: code, file and updates are
 * layers of one record with one revision, in the store. A revision is applied whole or not at all,
 * and the applied one never goes back.
 */
export abstract class RateLimitConfig {
  abstract current(): ConfigSnapshot;
  /** Tells of each change in this process after it was applied. */
  abstract readonly changes$: Observable<ConfigChange>;
  abstract readonly refused$: Observable<ConfigRefusal>;

  /**
   * Lays a merge patch (RFC 7396: null deletes) over what holds, for the whole fleet. Resolves to
   * the new revision's snapshot once it is written and applied here. With a time to come the patch is
   * `staged` in that revision, blocks no other update, and is laid over the configuration of that time.
   */
  abstract update(patch: ConfigLayer, options?: UpdateOptions): Promise<ConfigSnapshot>;
  /** Drops what updates have set at a path, `['policies', 'search', 'rate']`: code and file hold there again. */
  abstract unset(path: readonly string[], options?: RollbackOptions): Promise<ConfigSnapshot>;
  /** The updates that wait, in order of time, as the store has them. */
  abstract staged(): Promise<readonly StagedUpdate[]>;
  /** An update that waits does not take effect. Rejects with an UnknownStagedError if none does. */
  abstract cancel(id: number, options?: RollbackOptions): Promise<ConfigSnapshot>;
  /** Everything that is wrong with a patch or document; empty if `update` would take it. */
  abstract validate(input: unknown, options?: ValidateOptions): readonly ConfigIssue[];
  /** The last revisions, newest first. */
  abstract history(count?: number): Promise<PastRevision[]>;
  /**
   * A new revision with the content of an old one. What waited then waits again, unless its time has
   * passed; what was staged since is cancelled.
   */
  abstract rollback(revision: number, options?: RollbackOptions): Promise<ConfigSnapshot>;

  /** The report of each living process. */
  abstract nodes(): Promise<NodeAck[]>;
  /** Whether every living process works with exactly that revision. */
  abstract isEveryoneOn(revision: number): Promise<boolean>;

  /** Adds a part that works with the configuration, and gives it the current one. @internal */
  abstract consume(consumer: ConfigConsumer): void;
  /** A revision was mentioned elsewhere: it is read if it is new, and the next one is above it. @internal */
  abstract noticed(revision: number): void;
  /** The file of this process has another content; null if there is no file any more. @internal */
  abstract replaceFile(layer: OwnLayer): void;

  /** Begins with what this process brings along, and follows the fleet from then on. @internal */
  abstract start(own?: OwnConfig): Promise<void>;
  /** @internal */
  abstract close(): Promise<void>;
}

/** A layer that this process brings along. */
export interface OwnLayer {
  /** Null: there should be none. */
  readonly document: ConfigLayer | null;
  /** Of two layers with versions the higher one holds. */
  readonly version?: number;
}

/** The layers of a process: its code and its file. A layer that is left out stays as the fleet has it. */
export interface OwnConfig {
  readonly code?: OwnLayer;
  readonly file?: OwnLayer;
}
