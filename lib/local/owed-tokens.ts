import { ownText } from '../common/ids.js';

interface Owed {
  tokens: number;
  /** When the first of them passed. */
  readonly sinceMicros: number;
}

/**
 * Tokens that passed by the share of this process, by key, until a debt has reported them to the store. The
 * bucket there fills meanwhile as if nothing had been used; without the report, a connection that is
 * lost again and again would give the rate twice, once by the store and once by the shares.
 */
export class OwedTokens {
  private readonly byKey = new Map<string, Owed>();

  constructor(private readonly maxKeys: number) {}

  get isEmpty(): boolean {
    return this.byKey.size === 0;
  }

  /** Keys beyond the room for them are not reported later: that is an outage as any other. */
  add(key: string, tokens: number, sinceMicros: number): void {
    const owed = this.byKey.get(key);
    if (owed !== undefined) owed.tokens += tokens;
    else if (this.byKey.size < this.maxKeys) this.byKey.set(ownText(key), { tokens, sinceMicros });
  }

  /** Tokens that were not used after all. */
  putBack(key: string, tokens: number): void {
    const owed = this.byKey.get(key);
    if (owed === undefined) return;
    owed.tokens -= tokens;
    if (owed.tokens <= 0) this.byKey.delete(key);
  }

  /** Under another limit they are the same part of a bucket, as the tokens in it are. */
  rescale(factor: number): void {
    for (const owed of this.byKey.values()) owed.tokens = Math.ceil(owed.tokens * factor);
  }

  take(key: string): Owed | undefined {
    const owed = this.byKey.get(key);
    if (owed !== undefined) this.byKey.delete(key);
    return owed;
  }

  /** Drops tokens that need no report any more. */
  sweep(isOver: (key: string, owed: Owed) => boolean): void {
    for (const [key, owed] of this.byKey) if (isOver(key, owed)) this.byKey.delete(key);
  }
}
