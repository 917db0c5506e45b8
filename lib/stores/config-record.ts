import { InvalidArgumentError } from '../common/errors.js';
import { remembered } from '../common/immutable.js';
import {
  type ConfigDraft,
  type ConfigRecord,
  type StagedUpdate,
  type LayersByService,
  type NodeAck,
} from './config-store.js';
import { isTooDeep } from './envelope.js';

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
  if (value === undefined) return 'it is not JSON, or more than a record can be';
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

/** Whether it is a time that a calendar has, in milliseconds since 1970. */
export const isInstant = (ms: unknown): ms is number =>
  typeof ms === 'number' && Math.abs(ms) <= LAST_INSTANT_MS;

/** What is in a text that anybody may have written; undefined if it is no JSON, or no use. */
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
