import { createHash, randomBytes } from 'node:crypto';
import { hostname } from 'node:os';

/** A name for this process that no other process has. */
export function newNodeId(): string {
  return `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`;
}

/** Tells two processes apart that have the same name, at once or one after the other. */
export function newIncarnation(): string {
  return randomBytes(8).toString('hex');
}

/** Longer keys are kept as a digest, so that no request can make a key of any size. */
const LONGEST_PLAIN_KEY = 128;
/** `#` */
const DIGEST_MARK_CODE = 35;
/** The mark, and 256 bits in base64. */
const DIGEST_LENGTH = 44;
const digest = Buffer.alloc(DIGEST_LENGTH, DIGEST_MARK_CODE);

/** True for keys that are kept as they are. */
export function isPlainKey(key: unknown): key is string {
  if (typeof key !== 'string') return false;
  const { length } = key;
  return length > 0 && length <= LONGEST_PLAIN_KEY && !looksLikeDigest(key);
}

/** The length first: to read a character of each key takes a tenth of a decision, measured. */
function looksLikeDigest(text: string): boolean {
  return text.length === DIGEST_LENGTH && text.charCodeAt(0) === DIGEST_MARK_CODE;
}

/**
 * The key as it is stored: itself if it is short, else a digest. A short key that looks like a
 * digest is digested too, so that no key can pass for another.
 */
export function boundedKey(key: string): string {
  return isPlainKey(key) ? key : digestOf(key);
}

/** A piece of a text that is at least so long is a view of all of it to V8; a shorter one is a copy. */
const SHORTEST_VIEW = 13;

/**
 * The same text in memory of its own, for keys that are remembered. V8 lets a piece of a text hold on to
 * all of it, so a key of 20 characters cut from a URL keeps 14 KB, measured; the copy takes 0.1 µs.
 * A bounded key that looks like a digest is one, and nobody's piece.
 *
 * It is joined, which makes one plain text: a piece of a text, though it were its own, is compared 35 ns slower at
 * each look-up of the key, measured.
 */
export function ownText(text: string): string {
  if (text.length < SHORTEST_VIEW || looksLikeDigest(text)) return text;
  return [text.slice(0, 1), text.slice(1)].join('');
}

/** Over UTF-16, where texts that UTF-8 cannot tell apart (lone surrogates) still differ. */
export function digestOf(text: string): string {
  // Out of a buffer it is one text; two that are joined stay two, and take half as much again.
  digest.write(createHash('sha256').update(text, 'utf16le').digest('base64url'), 1, 'latin1');
  return digest.toString('latin1');
}

/** A quick spread of texts over a few places; the same in every process, so not for secrets. */
export function spread(text: string, places: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) {
    hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
  }
  return (hash >>> 0) % places;
}
