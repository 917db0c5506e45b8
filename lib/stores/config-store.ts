import { InvalidArgumentError } from '../common/errors.js';
import { remembered } from '../common/immutable.js';
import { isTooDeep } from './envelope.js';

/** Plain JSON, as it is kept. */
export type Json = null | boolean | number | string | readonly Json[] | JsonObject;
/** A plain object of JSON. */
export interface JsonObject {
  readonly [name: string]: Json;
}

/**
 * Why a revision was written. `stage`, `cancel` and `drop` change nothing but what waits: an update
 * was staged, cancelled, or did not fit any more when its time came.
 */
export type RevisionKind =
  | 'code'
  | 'file'
  | 'update'
  | 'rollback'
  | 'restore'
  | 'stage'
  | 'cancel'
  | 'drop';

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

/** The layer of one service. */
export interface VersionedLayer {
  /** Null: an empty layer. */
  readonly document: JsonObject | null;
  /** Of two versions the higher one holds. */
  readonly version: number | null;
}

/** Services that share a store have different code: each has a layer of its own. */
export type LayersByService = Readonly<Record<string, VersionedLayer>>;

/** The layers of one configuration, each as it was given. */
export interface ConfigLayers {
  readonly code: LayersByService;
  /** Layers from files, or from sources of the users' own. */
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
  /** Updates that still wait, in order of time. */
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
  /** The one before it, for processes that cannot use the current one. */
  readonly previous?: ConfigRecord;
  /** The fault of the current record, if it cannot be read. */
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

/** The report of a node. */
export interface NodeReport {
  readonly node: string;
  /** The revision it works with; 0: its own code. */
  readonly revision: number;
  readonly status: 'applied' | 'refused';
  /** The revision that was refused; if it works with that one, the update that it has staged. */
  readonly about?: number;
  readonly reason?: string;
  readonly service?: string;
  /** The resources of the node, for users who name one on the command line. */
  readonly resources?: readonly string[];
  /** Of these, those whose answers it can warm. */
  readonly warms?: readonly string[];
}

/** The report of a node without its revision. */
export type NodeFacts = Pick<NodeReport, 'service' | 'resources' | 'warms'>;

/** The report of a process on the configuration that it has read. */
export interface NodeAck extends NodeReport {
  /** The instant of the report, on the store's clock. */
  readonly atMs: number;
}

/**
 * Where the fleet's configuration is kept: one record, the one before it, a history, and what each
 * node says of it. A call without an answer in time rejects with a StoreUnavailableError.
 */
export interface ConfigStore {
  /** The stored records; without them if the current one has the id `known`. */
  read(known?: string): Promise<StoredConfig>;
  /**
   * Replaces the record of that revision (0: none), unless another writer did. The new revision is
   * one more than the larger of `expectedRevision` and `above`. Sending the same draft again is safe.
   */
  write(draft: ConfigDraft, expectedRevision: number, above?: number): Promise<WrittenConfig>;
  /** The last revisions, newest first. */
  history(count: number): Promise<ConfigRecord[]>;
  /** Stores the report of a node; it counts for `ttlMs`. */
  acknowledge(report: NodeReport, ttlMs: number): Promise<void>;
  /** From now on no call waits for a store that is away. */
  leave(): void;
  /** A node that leaves does not count any longer. */
  withdraw(node: string): Promise<void>;
  acknowledgements(): Promise<NodeAck[]>;
  /**
   * `hint` is called with the number of each revision that is written, or without one when some may
   * have been missed. Hints may be lost, late, doubled or forged: only `read` shows the stored revision.
   * Resolves to a function that ends it.
   */
  subscribe(hint: (revision?: number) => void): Promise<() => void>;
  close(): Promise<void>;
}

/** A configuration is read by people; one that is larger than this is a mistake. */
export const LARGEST_RECORD_BYTES = 1024 * 1024;
/** Of the history the newest are kept: so many, and no more than so many bytes. */
export const MOST_REVISIONS = 1000;
export const MOST_HISTORY_BYTES = 16 * LARGEST_RECORD_BYTES;
/** A higher revision was not counted by anybody; the scripts keep ten times this exact. */
export const HIGHEST_REVISION = 2 ** 48;
/** A promotion has a handful of steps; more than this is a program gone wrong. */
export const MOST_STAGED = 16;
/** Documents have a third of these levels at most. */
const DEEPEST = 100;
/** Where calendars end, in milliseconds from 1970. */
const LAST_INSTANT_MS = 8.64e15;
/** The length of a node's reason for a refusal; its log has the rest. */
const LONGEST_REASON = 500;

/** The draft as text, to which a store adds revision and time. */
export function encodeDraft(draft: ConfigDraft): string {
  const { code, file, ...others } = draft;
  const head = JSON.stringify(others);
  return checkedSize(`${head.slice(0, -1)},"code":${layersText(code)},"file":${layersText(file)}}`);
}

/** Updates leave code and file as they are. */
const layersText = remembered((layers: LayersByService): string => JSON.stringify(layers));

function checkedSize(text: string): string {
  const bytes = Buffer.byteLength(text);
  if (bytes > LARGEST_RECORD_BYTES) {
    const limit = `at most ${LARGEST_RECORD_BYTES} bytes`;
    throw new InvalidArgumentError('config', bytes, limit, `config: ${bytes} bytes; ${limit}`);
  }
  return text;
}

/** The record in a text, or its fault as a message. */
export function decodeRecord(text: string, revision: number): ConfigRecord | string {
  const value = parsed(text);
  if (value === undefined) return 'it is not JSON, or more than a record can be';
  if (!isRecord(value)) return 'it is not a record of this library';
  if (value.revision !== revision) return `it says that it is revision ${value.revision}`;
  return value;
}

/** The records among these texts; a damaged text is left out. */
export function readableRecords(texts: readonly string[]): ConfigRecord[] {
  return texts.map(parsed).filter(isRecord);
}

export function readableAcks(texts: readonly string[]): NodeAck[] {
  return texts.map(parsed).filter(isAck);
}

export function shortened(reason: string): string {
  return reason.length > LONGEST_REASON ? `${reason.slice(0, LONGEST_REASON)}…` : reason;
}

/** Whether it is a time that a calendar has, in milliseconds since 1970. */
export const isInstant = (ms: unknown): ms is number =>
  typeof ms === 'number' && Math.abs(ms) <= LAST_INSTANT_MS;

/** The value of a text from anywhere; undefined if it is no JSON, too large or too deep. */
export function parsed(text: string): unknown {
  // Twice as much as drafts may have: stores add a little.
  if (text.length > 2 * LARGEST_RECORD_BYTES || isTooDeep(text, DEEPEST)) return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function isRecord(value: unknown): value is ConfigRecord {
  if (!isObject(value)) return false;
  const { revision, atMs, effectiveAtMs, id, kind, by, hash, patch, code, file, staged } = value;
  return (
    Number.isFinite(revision) &&
    [atMs, effectiveAtMs].every(isInstant) &&
    [id, kind, by, hash].every((text) => typeof text === 'string') &&
    isObject(patch) &&
    Array.isArray(staged) &&
    staged.length <= MOST_STAGED &&
    staged.every(isStaged) &&
    [code, file].every((layers) => isObject(layers) && Object.values(layers).every(isLayer))
  );
}

function isStaged(value: unknown): value is StagedUpdate {
  if (!isObject(value)) return false;
  const { id, by, effectiveAtMs, patch } = value;
  const isNumbered = Number.isFinite(id) && isInstant(effectiveAtMs);
  return isNumbered && typeof by === 'string' && isObject(patch);
}

function isLayer(value: unknown): boolean {
  if (!isObject(value)) return false;
  const { document, version } = value;
  return (
    (document === null || isObject(document)) && (version === null || Number.isFinite(version))
  );
}

function isAck(value: unknown): value is NodeAck {
  if (!isObject(value)) return false;
  const { node, revision, atMs, resources = [], warms = [] } = value;
  const isNamed = [resources, warms].every(isListOfTexts);
  const isDated = Number.isFinite(revision) && isInstant(atMs);
  return isNamed && isDated && typeof node === 'string';
}

const isListOfTexts = (value: unknown): boolean =>
  Array.isArray(value) && value.every((one) => typeof one === 'string');

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
