import fc from 'fast-check';
import { BigValueError, joinValue, partKeys, splitValue } from 'nestjs-weir';
import { bytesAbove } from '../../lib/protection/big-values.js';
import { settle } from '../support/manual-clock.js';
import { Bench } from './bench.js';

const MIB = 1024 * 1024;

describe('values that are too big', () => {
  it('are refused before anything is done, with their size', async () => {
    const bench = new Bench({ preset: 'redis', breaker: { minimumCalls: 1 } });
    const [fits, tooBig] = [Buffer.alloc(MIB), Buffer.alloc(MIB + 1)];
    expect(bench.call({ value: fits }).hasBegun).toBe(true);
    const call = bench.call({ value: tooBig });
    await settle();
    expect(call.error).toBeInstanceOf(BigValueError);
    expect(call.error).toMatchObject({ bytes: MIB + 1, maxValueBytes: MIB, resource: 'db' });
    expect(call.hasBegun).toBe(false);
    expect(bench.stats).toMatchObject({ bigValues: 1, inFlight: 1, breaker: { calls: 0 } });
    expect(() => bench.protection.checkValue('db', tooBig)).toThrow(BigValueError);
  });

  it.each<[string, unknown, number]>([
    ['a text', 'x'.repeat(11), 11],
    ['a text of several bytes a letter', '€'.repeat(4), 12],
    ['bytes', new Uint8Array(11), 11],
    ['a buffer', new ArrayBuffer(11), 11],
    ['an object, as JSON', { a: 'é', b: 1 }, 16],
    ['a list', [1, 2, 3, 4, 5, 6], 13],
  ])('are measured: %s', (_, value, bytes) => {
    expect(bytesAbove(value, 10)).toBe(bytes);
    expect(bytesAbove(value, bytes)).toBeUndefined();
    expect(bytesAbove(value, bytes - 1)).toBe(bytes);
  });

  it('are not numbers, nothing, or what has no JSON', () => {
    for (const value of [1e300, null, true, { toJSON: () => undefined }]) {
      expect(bytesAbove(value, 1)).toBeUndefined();
    }
    const ring: { self?: unknown } = {};
    ring.self = ring;
    expect(() => bytesAbove(ring, 10)).toThrow('what JSON can hold');
  });
});

describe('a value in parts', () => {
  it('is the same when it is put together', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ maxLength: 500 }),
        fc.integer({ min: 1, max: 70 }),
        (bytes, max) => {
          const { manifest, parts } = splitValue(bytes, max);
          expect(parts.every((part) => part.length <= max && part.length > 0)).toBe(true);
          expect(parts).toHaveLength(Math.ceil(bytes.length / max));
          expect(new Set(partKeys('k', manifest)).size).toBe(parts.length);
          const joined = joinValue(JSON.parse(JSON.stringify(manifest)) as typeof manifest, parts);
          expect(joined!.equals(bytes)).toBe(true);
        },
      ),
    );
  });

  it('may be a text that is cut within a letter', () => {
    const { manifest, parts } = splitValue('a€b', 2);
    expect(joinValue(manifest, parts)!.toString()).toBe('a€b');
  });

  it('is nothing if a part is missing, doubled or of another value', () => {
    const { manifest, parts } = splitValue('abcdef', 2);
    const [a, b, c] = parts as [Buffer, Buffer, Buffer];
    const other = splitValue('abcdxx', 2).parts[2]!;
    for (const wrong of [
      [a, b],
      [a, null, c],
      [a, undefined, c],
      [a, b, b],
      [a, b, other],
      [b, a, c],
    ]) {
      expect(joinValue(manifest, wrong)).toBeUndefined();
    }
    expect(splitValue('abcdef', 2).manifest.id).not.toBe(manifest.id);
    expect(() => splitValue('abc', 0)).toThrow('maxPartBytes');
  });

  it('has keys that lie in one slot of a cluster, and another set for each write', () => {
    const { manifest } = splitValue('abc', 2);
    expect(partKeys('page:7', manifest)).toEqual([
      `{page:7}:${manifest.id}:0`,
      `{page:7}:${manifest.id}:1`,
    ]);
  });
});
