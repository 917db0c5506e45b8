import fc from 'fast-check';
import { boundedKey, digestOf, newNodeId, ownText, spread } from '../../lib/common/ids.js';

describe('a key as it is stored', () => {
  it.each(['k', 'user:42', ' ', 'a#b', '{slot}', 'x'.repeat(128), 'ключ', '\ud800'])(
    '%p is itself',
    (key) => {
      expect(boundedKey(key)).toBe(key);
    },
  );

  it('is short however long it was', () => {
    for (const length of [129, 1000, 1_000_000]) {
      expect(boundedKey('x'.repeat(length))).toHaveLength(44);
    }
  });

  it('tells long keys apart that differ at the end, or in length only', () => {
    const long = 'x'.repeat(500);
    const keys = [long, `${long}x`, `${long}y`, `${long}\0`];
    expect(new Set(keys.map(boundedKey)).size).toBe(keys.length);
  });

  it('cannot be forged: a key that looks like the digest of another is digested itself', () => {
    const victim = 'x'.repeat(200);
    const forged = boundedKey(victim);
    expect(boundedKey(forged)).not.toBe(forged);
    expect(boundedKey(boundedKey(forged))).not.toBe(boundedKey(forged));
  });

  it('tells lone surrogates apart, which are all the same in UTF-8', () => {
    const tail = 'x'.repeat(200);
    expect(boundedKey(`\ud800${tail}`)).not.toBe(boundedKey(`\ud801${tail}`));
  });

  it('property: two keys are stored as one only if they are one', () => {
    const short = fc.string({ minLength: 1, maxLength: 140, unit: 'binary' });
    const long = short.map((text) => text + 'x'.repeat(128));
    const marked = short.map((text) => `#${text}`);
    const digests = fc.oneof(short, long, marked).map(digestOf);
    const keys = fc.oneof(short, long, marked, digests);
    fc.assert(
      fc.property(fc.array(keys, { maxLength: 20 }), (some) => {
        const all = [...some, ...some.map(boundedKey)];
        expect(new Set(all.map(boundedKey)).size).toBe(new Set(all).size);
      }),
    );
  });
});

describe('the quick spread', () => {
  it('is the same in every process, within the places, and roughly even', () => {
    expect(spread('weir', 1_000_000)).toBe(spread('weir', 1_000_000));
    const counts = new Array<number>(16).fill(0);
    for (let i = 0; i < 16_000; i++) counts[spread(`key-${i}`, 16)]!++;
    expect(Math.min(...counts)).toBeGreaterThan(800);
    expect(Math.max(...counts)).toBeLessThan(1200);
  });
});

describe('the name of a node', () => {
  it('says the process, and is new each time', () => {
    expect(newNodeId()).toContain(`:${process.pid}:`);
    expect(newNodeId()).not.toBe(newNodeId());
  });
});

describe('a text in memory of its own', () => {
  it('is the same text, whatever its length and wherever a pair of surrogates is cut', () => {
    const texts = fc.oneof(
      fc.string({ maxLength: 60, unit: 'binary' }),
      fc.string({ minLength: 10, maxLength: 16 }).map((text) => `\u{1f600}${text}\ud83d`),
    );
    fc.assert(
      fc.property(texts, fc.nat({ max: 20 }), (text, from) => {
        const piece = text.slice(from);
        expect(ownText(piece)).toBe(piece);
      }),
    );
  });
});
