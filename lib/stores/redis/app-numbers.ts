import { createHash } from 'node:crypto';

/** So many bits of a digest are a whole number in a double. */
const DIGEST_BYTES = 6;

/**
 * Which number an app has in the ledger. The digest stands for the list: a call carries it, so that
 * nothing is booked under a number that means another app to the ledger. A list that has grown keeps
 * the digests of what it was before, and so does not shut out who knows the beginning of it.
 */
export class AppNumbers {
  /** Of the first app, of the first two, and so on. */
  readonly digests: readonly number[];
  private readonly numbers: ReadonlyMap<string, number>;

  constructor(readonly names: readonly string[]) {
    let digest = 0;
    this.digests = names.map((name) => (digest = digestOf(digest, name)));
    this.numbers = new Map(names.map((name, number) => [name, number]));
  }

  get digest(): number {
    return this.digests.at(-1) ?? 0;
  }

  /** Undefined if the ledger has no such app. */
  of(name: string | undefined): number | undefined {
    return name === undefined ? undefined : this.numbers.get(name);
  }
}

function digestOf(before: number, name: string): number {
  const bytes = createHash('sha256').update(`${before}|${name}`).digest();
  return bytes.readUIntBE(0, DIGEST_BYTES);
}
