import { messageHeaderOf, messageHeaders } from '../../lib/transports/rpc/message-context.js';

function nested(levels: number): unknown {
  let value: unknown = 'one';
  for (let i = 0; i < levels; i++) value = [value];
  return value;
}

describe('a header of a message', () => {
  it.each([
    ['a text', { 'X-Client': 'one' }, 'one'],
    ['bytes', { 'x-client': Buffer.from('one') }, 'one'],
    ['bytes that are no text', { 'x-client': Buffer.from([0xff]) }, '\0/w=='],
    ['other bytes that are no text', { 'x-client': Buffer.from([0xfe]) }, '\0/g=='],
    ['a number', { 'x-client': 1 }, '1'],
    ['sent twice', { 'x-client': ['one', 'two'] }, 'one,two'],
    ['an object, which is no key', { 'x-client': { a: 1 } }, undefined],
    ['a list with an object in it', { 'x-client': ['one', { a: 1 }] }, undefined],
    ['a list of lists', { 'x-client': [['one'], ['two']] }, undefined],
    ['5,000 lists in each other', { 'x-client': nested(5000) }, undefined],
    ['not there', { 'x-other': 'one' }, undefined],
  ])('may be %s', (_what, headers, expected) => {
    const kafka = { getMessage: () => ({ headers }) };
    const rmq = { getMessage: () => ({ properties: { headers } }) };
    const mqtt = { getPacket: () => ({ properties: { userProperties: headers } }) };
    const tcp = { getMetadata: () => headers };
    for (const context of [kafka, rmq, mqtt, tcp]) {
      expect(messageHeaderOf(context, 'x-client')).toBe(expected);
    }
  });

  it('is not there where a message has none', () => {
    const contexts = [
      {},
      { getHeaders: () => undefined },
      { getMessage: () => undefined },
      { getPacket: () => ({}) },
      { getMetadata: () => undefined },
      { getMetadata: () => 'text' },
    ];
    for (const context of contexts) expect(messageHeaderOf(context, 'x-client')).toBeUndefined();
  });

  it('is nothing that was not sent', () => {
    const context = { getMetadata: () => ({}) };
    expect(messageHeaderOf(context, 'constructor')).toBeUndefined();
  });
});

describe('all headers of a message', () => {
  it('are by their names in small letters, the first of those that differ in nothing else', () => {
    const headers = { 'X-Client': 'one', 'x-client': 'two', Other: Buffer.from('three'), odd: {} };
    const table = { keys: () => ['X-Client'], get: () => 'one' };
    expect(messageHeaders({ getMetadata: () => headers })).toEqual({
      'x-client': 'one',
      other: 'three',
      odd: undefined,
    });
    expect(messageHeaders({ getHeaders: () => table })).toEqual({ 'x-client': 'one' });
    for (const odd of [undefined, null, 7, 'text', []]) {
      expect(messageHeaders({ getMetadata: () => odd })).toEqual({});
    }
  });

  it('are read in the time that their number takes, not in its square', () => {
    const headers = Object.fromEntries(Array.from({ length: 20_000 }, (_, i) => [`h${i}`, 'x']));
    const begun = process.cpuUsage();
    expect(Object.keys(messageHeaders({ getMetadata: () => headers }))).toHaveLength(20_000);
    expect(process.cpuUsage(begun).user / 1000).toBeLessThan(500);
  });
});
