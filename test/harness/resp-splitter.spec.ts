import fc from 'fast-check';
import { RespSplitter } from '../support/index.js';

const split = (splitter: RespSplitter, chunk: string): string[] =>
  splitter.push(Buffer.from(chunk)).map(({ bytes }) => bytes.toString());

describe('RespSplitter', () => {
  it.each([
    ['simple string', '+OK\r\n'],
    ['error', '-ERR no\r\n'],
    ['integer', ':-12\r\n'],
    ['null', '_\r\n'],
    ['boolean', '#t\r\n'],
    ['double', ',1.5\r\n'],
    ['big number', '(123456789012345678901234567890\r\n'],
    ['bulk string', '$5\r\nhello\r\n'],
    ['bulk string with line ends', '$4\r\n\r\n\r\n\r\n'],
    ['empty bulk string', '$0\r\n\r\n'],
    ['RESP2 null bulk string', '$-1\r\n'],
    ['RESP2 null array', '*-1\r\n'],
    ['verbatim string', '=7\r\ntxt:abc\r\n'],
    ['bulk error', '!5\r\nERR x\r\n'],
    ['empty array', '*0\r\n'],
    ['nested array', '*2\r\n*1\r\n:1\r\n$1\r\na\r\n'],
    ['map', '%1\r\n+a\r\n*1\r\n:1\r\n'],
    ['set', '~2\r\n+a\r\n+b\r\n'],
    ['reply with an attribute', '|1\r\n+ttl\r\n:1\r\n*1\r\n+a\r\n'],
  ])('takes a %s for one reply', (_, reply) => {
    expect(split(new RespSplitter(), reply + reply)).toEqual([reply, reply]);
  });

  it('gives a reply only when its last byte is there', () => {
    const splitter = new RespSplitter();
    expect(split(splitter, '*2\r\n$3\r\nabc\r\n:1\r')).toEqual([]);
    expect(splitter.pendingBytes).toBe(16);
    expect(split(splitter, '\n+O')).toEqual(['*2\r\n$3\r\nabc\r\n:1\r\n']);
    expect(splitter.pendingBytes).toBe(2);
  });

  it('tells pushes from replies', () => {
    const messages = new RespSplitter().push(Buffer.from('+OK\r\n>2\r\n+message\r\n+x\r\n:1\r\n'));
    expect(messages.map(({ kind }) => kind)).toEqual(['reply', 'push', 'reply']);
  });

  it.each(['hello\r\n', '$x\r\n', '*-2\r\n'])('refuses %j, which is no RESP', (bytes) => {
    expect(() => new RespSplitter().push(Buffer.from(bytes))).toThrow(/RESP/);
  });

  it('cuts any stream of replies in the same places, in whatever chunks it comes', () => {
    fc.assert(
      fc.property(
        fc.array(reply, { maxLength: 8 }),
        fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 }),
        (replies, cuts) => {
          const stream = Buffer.concat(replies);
          const splitter = new RespSplitter();
          const found = chunks(stream, cuts).flatMap((chunk) => splitter.push(chunk));
          expect(found.map(({ bytes }) => bytes.toString('latin1'))).toEqual(
            replies.map((bytes) => bytes.toString('latin1')),
          );
          expect(splitter.pendingBytes).toBe(0);
        },
      ),
      { numRuns: 500 },
    );
  });

  it('cuts a stream that comes byte by byte', () => {
    fc.assert(
      fc.property(fc.array(reply, { maxLength: 3 }), (replies) => {
        const splitter = new RespSplitter();
        const found = [...Buffer.concat(replies)].flatMap((byte) =>
          splitter.push(Buffer.from([byte])),
        );
        expect(found.map(({ bytes }) => bytes)).toEqual(replies);
      }),
    );
  });
});

const bytes = (...parts: (string | Uint8Array)[]): Buffer =>
  Buffer.concat(parts.map((part) => Buffer.from(part as string)));

const line = fc.stringMatching(/^[ -~]{0,12}$/);
const scalar = fc.oneof(
  fc.tuple(fc.constantFrom('+', '-', ','), line).map(([type, text]) => bytes(type, text, '\r\n')),
  fc.bigInt().map((value) => bytes(`(${value}\r\n`)),
  fc.integer().map((value) => bytes(`:${value}\r\n`)),
  fc.constantFrom('_\r\n', '#t\r\n', '#f\r\n', '$-1\r\n', '*-1\r\n').map((text) => bytes(text)),
  // Any bytes at all, among them line ends and what looks like the head of another value.
  fc
    .tuple(
      fc.constantFrom('$', '=', '!'),
      fc.oneof(
        fc.uint8Array({ maxLength: 40 }),
        fc.constantFrom('\r\n', '$3\r\nabc\r\n', '*2\r\n'),
      ),
    )
    .map(([type, body]) => bytes(type, `${body.length}\r\n`, body, '\r\n')),
);

const { reply } = fc.letrec<{ reply: Buffer }>((tie) => ({
  reply: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    scalar,
    fc
      .tuple(fc.constantFrom('*', '~', '>'), fc.array(tie('reply'), { maxLength: 4 }))
      .map(([type, items]) => bytes(`${type}${items.length}\r\n`, ...items)),
    fc
      .array(fc.tuple(tie('reply'), tie('reply')), { maxLength: 3 })
      .map((entries) => bytes(`%${entries.length}\r\n`, ...entries.flat())),
    fc
      .tuple(fc.array(fc.tuple(tie('reply'), tie('reply')), { maxLength: 2 }), tie('reply'))
      .map(([entries, value]) => bytes(`|${entries.length}\r\n`, ...entries.flat(), value)),
  ),
}));

function chunks(stream: Buffer, cuts: readonly number[]): Buffer[] {
  const places = cuts.map((cut) => Math.floor(cut * stream.length)).sort((a, b) => a - b);
  return [...places, stream.length].map((end, i) => stream.subarray(places[i - 1] ?? 0, end));
}
