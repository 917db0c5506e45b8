import { ownText } from '../common/ids.js';

/** Tokens that passed at about the same time; the instant is that of the last of them. */
export interface Used {
  tokens: number;
  usedAtMicros: number;
}

interface Owed {
  /** When the first of them passed. */
  readonly sinceMicros: number;
  /** Uses in the order of time. */
  readonly used: Used[];
}

/** A reset forgives what passed before it, so the instants are kept apart as far as these reach. */
const MOST_INSTANTS = 4;

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
  add(key: string, tokens: number, usedAtMicros: number): void {
    const used = this.byKey.get(key)?.used;
    if (used !== undefined) {
      const before = used.findLastIndex((one) => one.usedAtMicros <= usedAtMicros);
      used.splice(before + 1, 0, { tokens, usedAtMicros });
      if (used.length > MOST_INSTANTS) joinNearest(used);
    } else if (this.byKey.size < this.maxKeys) {
      this.byKey.set(ownText(key), { sinceMicros: usedAtMicros, used: [{ tokens, usedAtMicros }] });
    }
  }

  /** Tokens that were not used after all. */
  putBack(key: string, tokens: number): void {
    const used = this.byKey.get(key)?.used;
    if (used === undefined) return;
    for (let left = tokens; left > 0 && used.length > 0;) {
      const last = used.at(-1)!;
      const back = Math.min(left, last.tokens);
      last.tokens -= back;
      left -= back;
      if (last.tokens === 0) used.pop();
    }
    if (used.length === 0) this.byKey.delete(key);
  }

  /** Under another limit they are the same part of a bucket, as the tokens in it are. */
  rescale(factor: number): void {
    for (const { used } of this.byKey.values()) {
      for (const one of used) one.tokens = Math.ceil(one.tokens * factor);
    }
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

function joinNearest(used: Used[]): void {
  const gap = (i: number): number => used[i]!.usedAtMicros - used[i - 1]!.usedAtMicros;
  let nearest = 1;
  for (let i = 2; i < used.length; i++) if (gap(i) < gap(nearest)) nearest = i;
  used[nearest]!.tokens += used[nearest - 1]!.tokens;
  used.splice(nearest - 1, 1);
}
