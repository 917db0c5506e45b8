/**
 * HalfSipHash-1-3 over UTF-16 units: a 32-bit hash that nobody without the seed can steer, so that
 * a flood of made-up keys cannot be aimed at somebody's overflow bucket.
 */
export class KeyedHash {
  private readonly k0: number;
  private readonly k1: number;

  constructor(seed: Uint32Array = crypto.getRandomValues(new Uint32Array(2))) {
    this.k0 = (seed[0] ?? 0) | 0;
    this.k1 = (seed[1] ?? 0) | 0;
  }

  of(text: string): number {
    let v0 = this.k0;
    let v1 = this.k1;
    let v2 = 0x6c796765 ^ this.k0;
    let v3 = 0x74656462 ^ this.k1;
    const words = (text.length >> 1) + 1;
    for (let i = 0; i < words + FINAL_ROUNDS; i++) {
      const word = i < words ? wordAt(text, i * 2) : 0;
      if (i === words) v2 ^= 0xff;
      v3 ^= word;
      v0 = (v0 + v1) | 0;
      v1 = ((v1 << 5) | (v1 >>> 27)) ^ v0;
      v0 = (v0 << 16) | (v0 >>> 16);
      v2 = (v2 + v3) | 0;
      v3 = ((v3 << 8) | (v3 >>> 24)) ^ v2;
      v0 = (v0 + v3) | 0;
      v3 = ((v3 << 7) | (v3 >>> 25)) ^ v0;
      v2 = (v2 + v1) | 0;
      v1 = ((v1 << 13) | (v1 >>> 19)) ^ v2;
      v2 = (v2 << 16) | (v2 >>> 16);
      v0 ^= word;
    }
    return (v1 ^ v3) >>> 0;
  }
}

const FINAL_ROUNDS = 3;

/** Two units a word; the last word carries the length, so that a text and its prefix differ. */
function wordAt(text: string, at: number): number {
  const length = text.length;
  if (at + 1 < length) return text.charCodeAt(at) | (text.charCodeAt(at + 1) << 16);
  return (at < length ? text.charCodeAt(at) : 0) ^ (length << 16);
}
