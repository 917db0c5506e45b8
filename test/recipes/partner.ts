import { type Protection, type RateLimiter } from 'nestjs-weir';

/**
 * A partner that allows ten requests a second and minds bursts. Needs
 *
 *     policies: { partner: { algorithm: 'leaky-bucket', mode: 'shaper', rate: '10/s', burst: 50 } }
 *     protection: { partner: { deadline: '2s', breaker: {}, throttle: {} } }
 */
export class PartnerClient {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly protection: Protection,
    private readonly call: (path: string, signal: AbortSignal) => Promise<Response>,
  ) {}

  /** Waits for its turn, one every 100 ms over the whole fleet; gives up after `timeoutMs`. */
  async get(path: string, timeoutMs = 5000): Promise<unknown> {
    await this.limiter.acquire({ policy: 'partner', key: 'partner' }, { timeoutMs });
    return this.protection.run('partner', async ({ signal }) => {
      const response = await this.call(path, signal);
      if (!response.ok) throw new PartnerError(response.status);
      return response.json();
    });
  }
}

/** `status` is what the throttle knows refusals by: 429 and 503. */
export class PartnerError extends Error {
  constructor(readonly status: number) {
    super(`the partner answers ${status}`);
  }
}
