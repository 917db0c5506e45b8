import fc from 'fast-check';
import { inOneLine, quoted, quotedError, withoutSteering } from '../../lib/common/quoted.js';

const STEERING = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
/** Any text that UTF-16 can hold, unpaired surrogates and tags of the last planes as well. */
const text = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.array(fc.integer({ min: 0, max: 0xffff })).map((codes) => String.fromCharCode(...codes)),
);

describe("somebody else's words", () => {
  it.each([
    ['a\nb\u001b[2J', '"a\\nb\\u001b[2J"'],
    ['\u009b\u202e\u2028', '"\\u009b\\u202e\\u2028"'],
    ['\u{e0041}', '"\\u{e0041}"'],
    ['\ud800', '"\\ud800"'],
    ['x'.repeat(200), `"${'x'.repeat(100)}…"`],
  ])('%j are quoted as %s', (words, told) => expect(quoted(words)).toBe(told));

  it('are nothing but text, however they are told', () => {
    fc.assert(
      fc.property(text, (words) => {
        for (const told of [quoted(words), inOneLine(words), quotedError(new Error(words))]) {
          expect(told).not.toMatch(STEERING);
        }
        expect(withoutSteering(words).replace(/[\n\t]/g, '')).not.toMatch(STEERING);
        expect(quoted(words).length).toBeLessThan(900);
      }),
    );
  });

  it('stand in one line, or in theirs', () => {
    const words = '2 faults:\n  one\u0007\n  two\tthree';
    expect(inOneLine(words)).toBe('2 faults: one; two three');
    expect(withoutSteering(words)).toBe('2 faults:\n  one\n  two\tthree');
  });

  it('may be those of anything that was thrown', () => {
    const silent = Object.create(null) as object;
    expect([quotedError('no'), quotedError(undefined), quotedError(silent)]).toEqual([
      '"no"',
      '"undefined"',
      'an error without a message',
    ]);
  });
});
