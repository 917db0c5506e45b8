import { type HttpRequest } from '../shared/requests.js';

/** To look costs as much as a decision, and what is odd is so for many requests. */
const ALL_OF_THE_FIRST = 1000;
const ONE_IN = 64;

/**
 * Says once what is odd about the way in which callers' addresses are found out. Nothing is
 * refused: a caller with such a header is limited by the address that the framework gives.
 */
export class ProxyWarnings {
  private readonly told = new Set<string>();
  private looks = 0;

  constructor(private readonly warn: (text: string) => void) {}

  look(request: HttpRequest): void {
    if (++this.looks > ALL_OF_THE_FIRST && this.looks % ONE_IN !== 0) return;
    const { headers } = request;
    if (headers['x-forwarded-for'] !== undefined) this.lookAtForwardedFor(request);
    else if (headers.forwarded !== undefined) this.once(FORWARDED);
  }

  private lookAtForwardedFor(request: HttpRequest): void {
    const { app } = request;
    const trust = app === undefined ? trustOfFastify(request) : app.get?.('trust proxy');
    if (trust === false) this.once(UNEXPECTED);
    else if (trust === true) this.once(PERMISSIVE);
  }

  private once(text: string): void {
    if (this.told.has(text)) return;
    this.told.add(text);
    this.warn(text);
  }
}

/** Addresses of documentation, which nobody has: whoever trusts them trusts everybody. */
const MADE_UP = {
  socket: { remoteAddress: '192.0.2.1' },
  headers: { 'x-forwarded-for': '203.0.113.1, 198.51.100.1' },
};

/** Fastify does not say whom it trusts, but who came through a trusted proxy has several `ips`. */
function trustOfFastify(request: HttpRequest): boolean | 'some' {
  if ((request.ips?.length ?? 0) <= 1) return false;
  try {
    const kind = Object.getPrototypeOf(request) as object;
    const madeUp = Object.create(kind, { raw: { value: MADE_UP } }) as HttpRequest;
    return madeUp.ips?.length === 3 || 'some';
  } catch {
    return 'some';
  }
}

const UNEXPECTED =
  'A request has X-Forwarded-For, but it came from no proxy that is trusted: behind a proxy all callers then have its ' +
  "address and one bucket. Say which to trust: app.set('trust proxy', 1) on Express, " +
  "new FastifyAdapter({ trustProxy: '10.0.0.0/8' }) on Fastify, where a number trusts nobody. " +
  'Without a proxy, somebody made the header up, and it was ignored.';

const PERMISSIVE =
  "'trust proxy' is true, or trustProxy of Fastify: callers can then choose their address by X-Forwarded-For, and with " +
  "it a new bucket for each request. Say which to trust: app.set('trust proxy', 1) on Express, " +
  "new FastifyAdapter({ trustProxy: '10.0.0.0/8' }) on Fastify.";

const FORWARDED =
  'A request has the header Forwarded, which neither Express nor Fastify looks at: if it comes from ' +
  'your proxy, let the proxy send X-Forwarded-For.';
