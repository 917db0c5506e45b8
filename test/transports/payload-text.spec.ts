import { payloadText } from '../../lib/transports/shared/substitutes.js';

const bytes = (length: number, last = 0): Buffer => {
  const all = Buffer.alloc(length);
  all[length - 1] = last;
  return all;
};

describe('the text of a payload', () => {
  it('is that of JSON, where that is quick', () => {
    const payload = { id: 7, of: [{ name: 'a' }, null], no: undefined };
    expect(payloadText(payload)).toBe(JSON.stringify(payload));
    expect(payloadText(undefined)).toBe('');
  });

  it('has bytes as they are, and not as a list of numbers', () => {
    const text = payloadText({ id: 7, parts: [{ data: bytes(3_000_000) }] });
    expect(text.length).toBeLessThan(4_100_000);
    expect(payloadText({ id: 7, parts: [{ data: bytes(3_000_000) }] })).toBe(text);
    expect(payloadText({ id: 7, parts: [{ data: bytes(3_000_000, 1) }] })).not.toBe(text);
    expect(payloadText(bytes(10))).not.toBe(payloadText(bytes(11)));
  });

  it('is refused where it would be too long, and where it has no end', () => {
    expect(() => payloadText({ data: bytes(4_000_000) })).toThrow(RangeError);
    const loop: Record<string, unknown> = {};
    loop.self = loop;
    expect(() => payloadText(loop)).toThrow(TypeError);
  });
});
