import { isIPv4, isIPv6 } from 'node:net';
import fc from 'fast-check';
import { clientAddress } from '../../lib/common/address.js';

const BITS = 128;

/** Eight groups of sixteen bits; addresses that stand for IPv4 have a test of their own. */
const groups = fc
  .array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 })
  .filter((all) => !isMapped(all));
const prefixes = fc.integer({ min: 32, max: BITS });

function isMapped(all: readonly number[]): boolean {
  return all.slice(0, 5).every((group) => group === 0) && all[5] === 0xffff;
}

function textOf(all: readonly number[]): string {
  return all.map((group) => group.toString(16)).join(':');
}

/** As the platform writes it: in lower case, the longest run of zeros left out. */
function shortOf(address: string): string {
  return new URL(`http://[${address}]`).hostname.slice(1, -1);
}

function bitsOf(all: readonly number[]): bigint {
  return all.reduce((bits, group) => (bits << 16n) | BigInt(group), 0n);
}

describe('an address as limits count it', () => {
  it.each([
    ['203.0.113.7', '203.0.113.7'],
    ['203.0.113.7:443', '203.0.113.7'],
    ['[203.0.113.7]:443', '203.0.113.7'],
    ['[203.0.113.7]', '203.0.113.7'],
    ['::ffff:203.0.113.7', '203.0.113.7'],
    ['::FFFF:203.0.113.7', '203.0.113.7'],
    ['[::ffff:203.0.113.7]:443', '203.0.113.7'],
    ['0:0:0:0:0:ffff:203.0.113.7', '203.0.113.7'],
    ['0000:0000:0000:0000:0000:ffff:203.0.113.7', '203.0.113.7'],
    ['::ffff:cb00:7107', '203.0.113.7'],
    ['64:ff9b::203.0.113.7', '203.0.113.7'],
    ['64:ff9b::cb00:7107', '203.0.113.7'],
    ['0064:FF9B:0:0:0:0:cb00:7107', '203.0.113.7'],
    ['[64:ff9b::cb00:7107]:443', '203.0.113.7'],
    ['64:ff9b:1::cb00:7107', '64:ff9b:1:0::/64'],
    ['0::ffff:cb00:7107', '203.0.113.7'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:0DB8:0001:0002::', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::1]:443', '2001:db8:1:2::/64'],
    ['[2001:db8:1:2::1]', '2001:db8:1:2::/64'],
    ['fe80::1%eth0', 'fe80:0:0:0::/64'],
    ['[fe80::1%eth0]:80', 'fe80:0:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::', '0:0:0:0::/64'],
  ])('%s is %s', (address, expected) => {
    expect(clientAddress(address)).toBe(expected);
  });

  it.each([
    [32, '2001:dbf::/32'],
    [28, '2001:db0::/28'],
    [48, '2001:dbf:abcd::/48'],
    [56, '2001:dbf:abcd:1200::/56'],
    [63, '2001:dbf:abcd:1234::/63'],
    [64, '2001:dbf:abcd:1235::/64'],
    [127, '2001:dbf:abcd:1235:0:0:0:6/127'],
    [128, '2001:dbf:abcd:1235:0:0:0:7/128'],
  ])('by %d bits', (prefix, expected) => {
    expect(clientAddress('2001:dbf:abcd:1235::7', prefix)).toBe(expected);
  });

  /** A sender of such a text has a bucket of its own, which no address shares. */
  it.each([
    'unknown',
    'a:b:c',
    ':',
    ':::',
    '1::2::3',
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7::8:9',
    '12345::',
    '::ffff:203.0.113.256',
    '::ffff:203.0.113',
    '::ffff:1.2.3.4.5',
    'ffff:203.0.113.7',
    '203.0.113.7::',
    '::203.0.113.7:1',
    '2001:db8',
    '1:2',
    '203.0.113.256:80',
    '::ffff:203.0.113.07',
    '1::2:3:4:5:6:7:8',
    '[2001:db8::1',
    'g::1',
  ])('keeps %s, which is none, as it is', (text) => {
    expect(clientAddress(text)).toBe(text);
  });

  it.each(['', '[]', '[]:80', '%eth0:'])('is nothing where there is nothing: %p', (text) => {
    expect(clientAddress(text)).toBe('');
  });

  it('keeps what is too long for one as it is', () => {
    for (const long of [
      `${'0:'.repeat(1_000_000)}1`,
      `[${':'.repeat(1_000_000)}]`,
      `::1${' '.repeat(98)}`,
    ]) {
      expect(clientAddress(long) === long).toBe(true);
    }
  });

  it('is the same however it is written', () => {
    fc.assert(
      fc.property(groups, prefixes, (all, prefix) => {
        const long = textOf(all);
        const expected = clientAddress(long, prefix);
        const padded = all.map((group) => group.toString(16).padStart(4, '0')).join(':');
        for (const other of [
          long.toUpperCase(),
          padded,
          shortOf(long),
          `${shortOf(long)}%eth1`,
          `[${shortOf(long)}]:8080`,
        ]) {
          expect(clientAddress(other, prefix)).toBe(expected);
        }
      }),
    );
  });

  it('is that of another exactly if the first bits of both are equal', () => {
    const pairs = groups.chain((all) =>
      fc.tuple(
        fc.constant(all),
        fc.integer({ min: 0, max: BITS - 1 }).map((bit) => flip(all, bit)),
      ),
    );
    fc.assert(
      fc.property(pairs, prefixes, ([one, other], prefix) => {
        fc.pre(!isMapped(other));
        const shift = BigInt(BITS - prefix);
        const isSame = bitsOf(one) >> shift === bitsOf(other) >> shift;
        const [a, b] = [clientAddress(textOf(one), prefix), clientAddress(textOf(other), prefix)];
        expect(a === b).toBe(isSame);
      }),
    );
  });

  it('is a network that the platform can read, or an IPv4 address', () => {
    fc.assert(
      fc.property(fc.oneof(fc.ipV6(), fc.ipV4()), prefixes, (address, prefix) => {
        fc.pre(isIPv4(address) || isIPv6(address));
        const [network, bits] = clientAddress(address, prefix).split('/') as [string, string?];
        if (bits === undefined) expect(isIPv4(network)).toBe(true);
        else expect([isIPv6(network), bits]).toEqual([true, String(prefix)]);
        // The network's own address is in it.
        if (bits !== undefined) expect(clientAddress(network, prefix)).toBe(`${network}/${bits}`);
      }),
    );
  });

  it('is IPv4 in the clothes of IPv6, whichever they are', () => {
    fc.assert(
      fc.property(fc.tuple(fc.nat(255), fc.nat(255), fc.nat(255), fc.nat(255)), (bytes) => {
        const [a, b, c, d] = bytes;
        const ipv4 = bytes.join('.');
        const hex = `${(a * 256 + b).toString(16)}:${(c * 256 + d).toString(16)}`;
        for (const prefix of ['::ffff:', '0:0::ffff:', '0:0:0:0:0:ffff:']) {
          expect(clientAddress(prefix + ipv4)).toBe(ipv4);
          expect(clientAddress(prefix + hex)).toBe(ipv4);
        }
      }),
    );
  });

  it('never throws, whatever somebody writes into a header', () => {
    const odd = fc.string({ unit: fc.constantFrom(...':.%[]/0f9 ') });
    fc.assert(
      fc.property(fc.oneof(odd, fc.string()), prefixes, (text, prefix) => {
        expect(typeof clientAddress(text, prefix)).toBe('string');
      }),
    );
  });
});

function flip(all: readonly number[], bit: number): number[] {
  return all.map((group, i) => (i === bit >> 4 ? group ^ (1 << (15 - (bit & 15))) : group));
}
