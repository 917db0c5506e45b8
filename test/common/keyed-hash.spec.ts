import fc from 'fast-check';
import { KeyedHash } from '../../lib/common/keyed-hash.js';

const PLACES = 16_384;
const seeded = (k0: number, k1: number): KeyedHash => new KeyedHash(Uint32Array.of(k0, k1));

/** Pearson's χ² of the places that the texts fall into; about `places` if they fall evenly. */
function chiSquare(texts: readonly string[], hash: KeyedHash, places: number): number {
  const counts = new Array<number>(places).fill(0);
  for (const text of texts) counts[hash.of(text) % places]!++;
  const expected = texts.length / places;
  return counts.reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
}

describe('the keyed hash', () => {
  it.each([
    ['counted names', (i: number) => `user:${i}`],
    ['addresses', (i: number) => `10.${i & 255}.${(i >> 8) & 255}.${i >> 16}`],
    ['texts that differ at the front only', (i: number) => `${i.toString(36)}@example.com`],
    ['texts that differ in one high unit', (i: number) => String.fromCharCode(i & 0xffff, i >> 16)],
  ])('spreads %s evenly over 16,384 places', (_name, textOf) => {
    const texts = Array.from({ length: PLACES * 16 }, (_, i) => textOf(i));
    const chi = chiSquare(texts, seeded(1, 2), PLACES);
    // Six standard deviations (√2n) around the mean.
    expect(Math.abs(chi - PLACES)).toBeLessThan(6 * Math.sqrt(2 * PLACES));
  });

  it('is the same for the same seed and another for another', () => {
    const texts = Array.from({ length: 1000 }, (_, i) => `key-${i}`);
    const same = texts.filter((text) => seeded(7, 9).of(text) === seeded(7, 9).of(text));
    const first = texts.filter((text) => seeded(7, 9).of(text) === seeded(8, 9).of(text));
    const second = texts.filter((text) => seeded(7, 9).of(text) === seeded(7, 10).of(text));
    expect([same.length, first.length, second.length]).toEqual([1000, 0, 0]);
  });

  it('has a seed of its own in each table, so that nobody can work out who shares a place', () => {
    const texts = Array.from({ length: 100 }, (_, i) => `key-${i}`);
    const [one, other] = [new KeyedHash(), new KeyedHash()];
    expect(texts.map((text) => one.of(text))).not.toEqual(texts.map((text) => other.of(text)));
  });

  it('tells a text from its prefixes, and from itself with zeros behind', () => {
    const hash = seeded(3, 4);
    const texts = ['', 'a', 'ab', 'abc', 'abcd', 'a\0', 'a\0\0', '\0', '\0\0', '\0a', 'a\u0001'];
    expect(new Set(texts.map((text) => hash.of(text))).size).toBe(texts.length);
  });

  it('property: is a whole number of 32 bits for any text, lone surrogates included', () => {
    const texts = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(texts, fc.integer(), fc.integer(), (text, k0, k1) => {
        const value = seeded(k0, k1).of(`${text}\ud800`);
        expect(Number.isInteger(value) && value >= 0 && value < 2 ** 32).toBe(true);
      }),
    );
  });

  it('property: one unit changed changes the hash (but for one in 2^32)', () => {
    const hash = seeded(5, 6);
    fc.assert(
      fc.property(
        fc.string({ minLength: 1, unit: 'binary' }),
        fc.nat(),
        fc.integer({ min: 1, max: 65_535 }),
        (text, position, flip) => {
          const at = position % text.length;
          const unit = String.fromCharCode(text.charCodeAt(at) ^ flip);
          expect(hash.of(text.slice(0, at) + unit + text.slice(at + 1))).not.toBe(hash.of(text));
        },
      ),
    );
  });
});
