import { createHash, randomBytes } from 'node:crypto';
import { InvalidArgumentError } from '../common/errors.js';
import { wholeAbove0 } from '../common/validate.js';
import { BigValueError } from './errors.js';
import { type ResourceSettings } from './resource-options.js';
import { type ResourceCounts } from './resource-stats.js';

/** UTF-8 takes from one to three bytes for each unit of a JavaScript text. */
const MOST_BYTES_PER_UNIT = 3;

export function rejectBigValue(
  resource: string,
  value: unknown,
  { maxValueBytes }: ResourceSettings,
  counts: ResourceCounts,
): void {
  if (maxValueBytes === Infinity) return;
  const bytes = bytesAbove(value, maxValueBytes);
  if (bytes === undefined) return;
  counts.bigValues++;
  throw new BigValueError(resource, bytes, maxValueBytes);
}

/** The bytes of a value if they are more than `maxBytes`, else undefined. Measures no more than it has to. */
export function bytesAbove(value: unknown, maxBytes: number): number | undefined {
  if (typeof value === 'string') return textAbove(value, maxBytes);
  if (ArrayBuffer.isView(value) || value instanceof ArrayBuffer) {
    return value.byteLength > maxBytes ? value.byteLength : undefined;
  }
  if (typeof value !== 'object' || value === null) return undefined;
  const text = jsonOf(value);
  return text === undefined ? Infinity : textAbove(text, maxBytes);
}

function textAbove(text: string, maxBytes: number): number | undefined {
  if (text.length * MOST_BYTES_PER_UNIT <= maxBytes) return undefined;
  const bytes = Buffer.byteLength(text);
  return bytes > maxBytes ? bytes : undefined;
}

/**
 * Objects are measured as JSON, which is how they are nearly always sent. Undefined: too deep or too long to
 * be written.
 */
function jsonOf(value: object): string | undefined {
  try {
    // `toJSON` may answer with nothing.
    const text: unknown = JSON.stringify(value);
    return typeof text === 'string' ? text : '';
  } catch (error) {
    // How deep it is may be a caller's choice, and no mistake of the program.
    if (error instanceof RangeError) return undefined;
    throw new InvalidArgumentError('value', typeof value, 'bytes, a text, or what JSON can hold');
  }
}

/** Everything that is needed to join a value again. Plain JSON, to be stored as such. */
export interface SplitManifest {
  /** Another one for each split: part of the parts' keys, so that two writes never mix. */
  readonly id: string;
  readonly parts: number;
  readonly bytes: number;
  readonly hash: string;
}

/** A value in parts, and the list of them. */
export interface SplitValue {
  readonly manifest: SplitManifest;
  readonly parts: readonly Buffer[];
}

/** Cuts a value into parts of at most `maxPartBytes`, which are views and no copies. */
export function splitValue(value: string | Uint8Array, maxPartBytes: number): SplitValue {
  wholeAbove0('maxPartBytes', maxPartBytes);
  const whole =
    typeof value === 'string'
      ? Buffer.from(value)
      : Buffer.from(value.buffer, value.byteOffset, value.byteLength);
  const parts: Buffer[] = [];
  for (let at = 0; at < whole.length; at += maxPartBytes) {
    parts.push(whole.subarray(at, at + maxPartBytes));
  }
  const id = randomBytes(8).toString('hex');
  const manifest = { id, parts: parts.length, bytes: whole.length, hash: hashOf(whole) };
  return { manifest, parts };
}

/** The keys of the parts. With the hash tag they lie on one node of a Redis Cluster, in one slot. */
export function partKeys(key: string, { id, parts }: SplitManifest): string[] {
  return Array.from({ length: parts }, (_, n) => `{${key}}:${id}:${n}`);
}

/** The value, or undefined if a part is missing or is not what was written: as good as expired. */
export function joinValue(
  manifest: SplitManifest,
  parts: readonly (Uint8Array | null | undefined)[],
): Buffer | undefined {
  if (parts.length !== manifest.parts) return undefined;
  const found = parts.filter((part) => part !== null && part !== undefined);
  const whole = Buffer.concat(found);
  return whole.length === manifest.bytes && hashOf(whole) === manifest.hash ? whole : undefined;
}

const hashOf = (whole: Buffer): string => createHash('sha1').update(whole).digest('base64url');
