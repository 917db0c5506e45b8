import { questionText } from '../../lib/transports/shared/substitutes.js';

const bytes = (length: number, last = 0): Buffer => {
  const all = Buffer.alloc(length);
  all[length - 1] = last;
  return all;
};

describe('the text of what a payload asks', () => {
  it('is that of JSON, where that is quick', () => {
    const payload = { id: 7, of: [{ name: 'a' }, null], no: undefined };
    expect(questionText(payload)).toBe(JSON.stringify(payload));
    expect(questionText(undefined)).toBe('');
  });

  it('has bytes as they are, and not as a list of numbers', () => {
    const text = questionText({ id: 7, parts: [{ data: bytes(3_000_000) }] });
    expect(text.length).toBeLessThan(4_100_000);
    expect(questionText({ id: 7, parts: [{ data: bytes(3_000_000) }] })).toBe(text);
    expect(questionText({ id: 7, parts: [{ data: bytes(3_000_000, 1) }] })).not.toBe(text);
    expect(questionText(bytes(10))).not.toBe(questionText(bytes(11)));
  });

  it('is refused where it would be too long, and where it has no end', () => {
    expect(() => questionText({ data: bytes(4_000_000) })).toThrow(RangeError);
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    expect(() => questionText(loop)).toThrow(TypeError);
  });
});
