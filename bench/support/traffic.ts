/**
 * Keys, and the order in which they are asked for.
 *
 * The order is shuffled beforehand: keys visited as they were inserted lie side by side in memory,
 * and real callers do not come that way.
 */
export class Traffic {
  private cursor = 0;

  constructor(
    readonly keys: readonly string[],
    private readonly order: Int32Array,
  ) {}

  static of(keyCount: number): Traffic {
    const keys = Array.from({ length: keyCount }, (_, n) => keyOf(n));
    return new Traffic(keys, shuffled(keyCount));
  }

  next(): string {
    const key = this.keys[this.order[this.cursor]!]!;
    this.cursor = this.cursor + 1 === this.order.length ? 0 : this.cursor + 1;
    return key;
  }
}

export function keyOf(n: number): string {
  return `user:${n}`;
}

/** Fisher and Yates, with a fixed seed: every contender and every run visits in the same order. */
function shuffled(length: number): Int32Array {
  const order = Int32Array.from({ length }, (_, n) => n);
  let seed = 0x9e3779b9;
  for (let last = length - 1; last > 0; last--) {
    seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
    const other = Math.floor((seed / 2 ** 32) * (last + 1));
    const held = order[last]!;
    order[last] = order[other]!;
    order[other] = held;
  }
  return order;
}
