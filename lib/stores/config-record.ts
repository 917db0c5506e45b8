import { InvalidArgumentError } from '../common/errors.js';
import { remembered } from '../common/immutable.js';
import {
  type ConfigDraft,
  type ConfigRecord,
  type StagedUpdate,
  type LayersByService,
  type NodeAck,
} from './config-store.js';

/** A configuration is read by people; one that is larger than this is a mistake. */
export const LARGEST_RECORD_BYTES = 1024 * 1024;
/** Of the history the newest are kept: so many, and no more than so many bytes. */
export const MOST_REVISIONS = 1000;
export const MOST_HISTORY_BYTES = 16 * LARGEST_RECORD_BYTES;
/** A higher revision was not counted by anybody; the scripts keep ten times this exact. */
export const HIGHEST_REVISION = 2 ** 48;
/** What a node has to say about a refusal; its log says the rest. */
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

/** The record in a text, or in words what is wrong with it. */
export function decodeRecord(text: string, revision: number): ConfigRecord | string {
  const value = parsed(text);
  if (value === undefined) return 'it is not JSON';
  if (!isRecord(value)) return 'it is not a record of this library';
  if (value.revision !== revision) return `it says that it is revision ${value.revision}`;
  return value;
}

/** The records among these texts; a text that somebody spoilt is left out. */
export function readableRecords(texts: readonly string[]): ConfigRecord[] {
  return texts.map(parsed).filter(isRecord);
}

export function readableAcks(texts: readonly string[]): NodeAck[] {
  return texts.map(parsed).filter(isAck);
}

export function shortened(reason: string): string {
  return reason.length > LONGEST_REASON ? `${reason.slice(0, LONGEST_REASON)}…` : reason;
}

function parsed(text: string): unknown {
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
    [revision, atMs, effectiveAtMs].every(Number.isFinite) &&
    [id, kind, by, hash].every((text) => typeof text === 'string') &&
    isObject(patch) &&
    Array.isArray(staged) &&
    staged.every(isStaged) &&
    [code, file].every((layers) => isObject(layers) && Object.values(layers).every(isLayer))
  );
}

function isStaged(value: unknown): value is StagedUpdate {
  if (!isObject(value)) return false;
  const { id, by, effectiveAtMs, patch } = value;
  return [id, effectiveAtMs].every(Number.isFinite) && typeof by === 'string' && isObject(patch);
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
  const isNamed = [resources, warms].every((names) => Array.isArray(names));
  return isNamed && typeof node === 'string' && [revision, atMs].every(Number.isFinite);
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
