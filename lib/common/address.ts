/** How much of an IPv6 address names one customer: providers hand out at least this much. */
const IPV6_PREFIX_BITS = 64;
/** The fewest and the most bits that may do so. */
export const LEAST_IPV6_BITS = 32;
export const IPV6_BITS = 128;
const GROUPS = 8;
const BITS_PER_GROUP = 16;

/** The longest IPv6 address has 45 characters, and room is left for brackets, a zone and a port. */
const LONGEST_ADDRESS = 100;
/** The prefix of an IPv4 address that came through a socket of IPv6. */
const MAPPED = '::ffff:';
/** RFC 6052: what a translator between the two puts before an IPv4 address, 64:ff9b::/96. */
const NAT64 = [0x64, 0xff9b, 0, 0, 0, 0];
const BRACKET = '['.charCodeAt(0);
const IPV4 = /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/;

// One customer has billions of addresses in a network of IPv6. IPv4 in the clothes of IPv6 is IPv4; ports,
// brackets and zones go. What is no address stays as it is.

/** An address as `key: 'ip'` has it: IPv4 as it is, IPv6 by its network. */
export function clientAddress(address: string, prefixBits = IPV6_PREFIX_BITS): string {
  const isPlain = address.charCodeAt(0) !== BRACKET && !address.includes(':');
  if (isPlain || address.length > LONGEST_ADDRESS) return address;
  // Nearly all callers of a server that listens on both.
  if (address.startsWith(MAPPED) && isIpv4(address.slice(MAPPED.length)))
    return address.slice(MAPPED.length);
  const bare = withoutPort(address);
  const groups = groupsOf(bare);
  if (groups === undefined) return bare;
  return ipv4In(groups) ?? `${networkOf(groups, prefixBits)}/${prefixBits}`;
}

/** Whether a text is an address, with or without a port. */
export function isAddress(text: string): boolean {
  if (text.length > LONGEST_ADDRESS) return false;
  const bare = withoutPort(text);
  return isIpv4(bare) || groupsOf(bare) !== undefined;
}

/** `[::1]:443` and `1.2.3.4:443`, and `fe80::1%eth0`. */
function withoutPort(address: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(address);
  const inner = bracketed === null ? address : bracketed[1]!;
  const colon = inner.indexOf(':');
  if (colon !== -1 && isIpv4(inner.slice(0, colon)) && /^:\d+$/.test(inner.slice(colon))) {
    return inner.slice(0, colon);
  }
  const zone = inner.indexOf('%');
  return zone === -1 ? inner : inner.slice(0, zone);
}

function isIpv4(text: string): boolean {
  return IPV4.test(text);
}

/** The eight groups of an IPv6 address; undefined if it is none. */
function groupsOf(address: string): number[] | undefined {
  const [head = '', tail, ...more] = address.split('::');
  if (more.length > 0) return undefined;
  const first = parse(head, tail === undefined);
  const last = tail === undefined ? [] : parse(tail, true);
  if (first === undefined || last === undefined) return undefined;
  const missing = GROUPS - first.length - last.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...first, ...new Array<number>(missing).fill(0), ...last];
}

/** The last two groups of an address, and only they, may be written as IPv4. */
function parse(part: string, isEnd: boolean): number[] | undefined {
  if (part === '') return [];
  const groups: number[] = [];
  const texts = part.split(':');
  for (const [index, text] of texts.entries()) {
    if (/^[\da-f]{1,4}$/i.test(text)) {
      groups.push(parseInt(text, 16));
    } else if (isEnd && index === texts.length - 1 && isIpv4(text)) {
      const [a, b, c, d] = text.split('.').map(Number);
      groups.push(a! * 256 + b!, c! * 256 + d!);
    } else {
      return undefined;
    }
  }
  return groups;
}

/** The IPv4 address that the last groups are, if the others say so. */
function ipv4In(groups: readonly number[]): string | undefined {
  const isMapped = groups[5] === 0xffff && groups.slice(0, 5).every((group) => group === 0);
  const isTranslated = NAT64.every((group, index) => groups[index] === group);
  if (!isMapped && !isTranslated) return undefined;
  const [high, low] = [groups[6]!, groups[7]!];
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

function networkOf(groups: readonly number[], prefixBits: number): string {
  const kept = groups.map((group, index) => {
    const bits = Math.min(BITS_PER_GROUP, Math.max(0, prefixBits - index * BITS_PER_GROUP));
    return group & ~((1 << (BITS_PER_GROUP - bits)) - 1);
  });
  const used = Math.ceil(prefixBits / BITS_PER_GROUP);
  const text = kept
    .slice(0, used)
    .map((group) => group.toString(16))
    .join(':');
  return used === GROUPS ? text : `${text}::`;
}
