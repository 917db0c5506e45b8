import { clientAddress, isAddress } from '../common/address.js';
import { ANONYMOUS, joinedKey, USER } from './key-resolver.js';

/**
 * The key of a caller whom an operator names, as the guard makes it from a request: `ada` is `user:ada` for a policy by
 * user, and an address there is a caller without a name. Keys that a function of the code makes are not known here, and
 * are taken as they are. Undefined if the policy's key, as a document has it, is not of so many words.
 */
export function namedKey(
  key: unknown,
  words: readonly string[],
  ipv6Prefix?: number,
): string | undefined {
  const kinds: readonly unknown[] = Array.isArray(key) ? key : [key];
  if (words.length !== kinds.length || words.includes('')) return undefined;
  const parts = words.map((word, index) => partOf(kinds[index], word, ipv6Prefix));
  return Array.isArray(key) ? joinedKey(parts) : parts[0]!;
}

/** Those that it may be, the likeliest first: under a policy by user an address may also be the name of one. */
export function namedKeys(key: unknown, words: readonly string[], ipv6Prefix?: number): string[] {
  const kinds: readonly unknown[] = Array.isArray(key) ? key : [key];
  const asNames = words.map((word, index) =>
    kinds[index] === 'user' && isAddress(word) ? USER + word : word,
  );
  const keys = [words, asNames].flatMap((all) => namedKey(key, all, ipv6Prefix) ?? []);
  return [...new Set(keys)];
}

function partOf(kind: unknown, word: string, ipv6Prefix: number | undefined): string {
  const address = (): string => addressOf(word, ipv6Prefix);
  if (kind === 'global') return 'global';
  if (kind === 'ip' || kind === undefined) return address();
  if (kind !== 'user' || word.startsWith(USER) || word.startsWith(ANONYMOUS)) return word;
  return isAddress(word) ? ANONYMOUS + address() : USER + word;
}

/** A network is written as the key is. */
const addressOf = (word: string, ipv6Prefix: number | undefined): string =>
  word.includes('/') ? word : clientAddress(word, ipv6Prefix);
