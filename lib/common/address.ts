/** How much of an IPv6 address names one customer: providers hand out at least this much. */
const IPV6_PREFIX_BITS = 64;
const GROUPS = 8;
const BITS_PER_GROUP = 16;

/**
 * An address as limits count it: IPv4 as it is, IPv6 by its network, because one customer has
 * billions of addresses in it. IPv4 in the clothes of IPv6 is IPv4; ports, brackets and zones go.
 */
export function clientAddress(address: string, prefixBits = IPV6_PREFIX_BITS): string {
  if (!address.includes(':')) return address;
  const bare = withoutPort(address);
  const mapped = /^(?:0*:)*:?(?:ffff:)(\d+\.\d+\.\d+\.\d+)$/i.exec(bare);
  if (mapped !== null) return mapped[1]!;
  const groups = groupsOf(bare);
  if (groups === undefined) return bare;
  return `${networkOf(groups, prefixBits)}/${prefixBits}`;
}

/** `[::1]:443` and `1.2.3.4:443`, and `fe80::1%eth0`. */
function withoutPort(address: string): string {
  const bracketed = /^\[([^\]]*)\]/.exec(address);
  const inner = bracketed === null ? address : bracketed[1]!;
  const isIpv4WithPort = bracketed === null && /^[\d.]+:\d+$/.test(inner);
  if (isIpv4WithPort) return inner.slice(0, inner.indexOf(':'));
  const zone = inner.indexOf('%');
  return zone === -1 ? inner : inner.slice(0, zone);
}

/** The eight groups of an IPv6 address; undefined if it is none. */
function groupsOf(address: string): number[] | undefined {
  const [head = '', tail, ...more] = address.split('::');
  if (more.length > 0) return undefined;
  const first = parse(head);
  const last = tail === undefined ? [] : parse(tail);
  if (first === undefined || last === undefined) return undefined;
  const missing = GROUPS - first.length - last.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  return [...first, ...new Array<number>(missing).fill(0), ...last];
}

function parse(part: string): number[] | undefined {
  if (part === '') return [];
  const groups: number[] = [];
  for (const group of part.split(':')) {
    if (/^\d+\.\d+\.\d+\.\d+$/.test(group)) {
      const [a, b, c, d] = group.split('.').map(Number);
      groups.push(a! * 256 + b!, c! * 256 + d!);
    } else if (/^[\da-f]{1,4}$/i.test(group)) {
      groups.push(parseInt(group, 16));
    } else {
      return undefined;
    }
  }
  return groups;
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
