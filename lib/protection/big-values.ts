import { createHash, randomBytes } from 'node:crypto';
import { wholeAbove0 } from '../common/validate.js';

/** What has to be known of a value to put it together again. Plain JSON, to be stored as one. */
export interface SplitManifest {
  /** Another one for each split: part of the parts' keys, so that two writes never mix. */
  readonly id: string;
  readonly parts: number;
  readonly bytes: number;
  readonly hash: string;
}

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
