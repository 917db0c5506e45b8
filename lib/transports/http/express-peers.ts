import { type HttpRequest, type TrustProxy } from '../shared/requests.js';

/** `ip` as Express has had it since version 4. */
const IP_OF_EXPRESS =
  /^function ip\(\)\s*\{\s*var trust = this\.app\.get\('trust proxy fn'\);\s*return proxyaddr\(this, trust\);?\s*\}$/;

/**
 * The peers of requests to Express, where no proxy's word counts. `ip` says the same, but reads all that proxies
 * have said before it asks whether that counts, which takes as long as the decision.
 */
export class ExpressPeers {
  /** The prototype of the application's requests, which is the same for nearly all. */
  private seen: object | null = null;
  private isPlain = false;

  /** Undefined for all other requests: `ip` knows more of them. */
  of(request: HttpRequest): string | undefined {
    const { app } = request;
    if (app === undefined) return undefined;
    const prototype = Object.getPrototypeOf(request) as object | null;
    if (prototype !== this.seen) {
      this.seen = prototype;
      this.isPlain = hasIpOfExpress(prototype);
    }
    // An application may have put an address of its own there.
    if (!this.isPlain || Object.hasOwn(request, 'ip')) return undefined;
    const trust = app.get?.('trust proxy fn');
    const peer = request.socket?.remoteAddress;
    if (peer === undefined || typeof trust !== 'function') return undefined;
    return (trust as TrustProxy)(peer, 0) ? undefined : peer;
  }
}

function hasIpOfExpress(prototype: object | null): boolean {
  for (let one = prototype; one !== null; one = Object.getPrototypeOf(one) as object | null) {
    const own: { get?: unknown } | undefined = Object.getOwnPropertyDescriptor(one, 'ip');
    if (own !== undefined) return IP_OF_EXPRESS.test(String(own.get));
  }
  return false;
}
