import { parseRate, type Rate } from '../common/duration.js';
import { InvalidArgumentError } from '../common/errors.js';
import { plainObject, rejectUnknown, wholeAbove0 } from '../common/validate.js';

/** A limit as `limit_req_zone` and `limit_req` of an nginx configuration have it. */
export interface NginxLimit {
  /** As it stands there: `'100r/s'`, `'30r/m'`. */
  readonly rate: string;
  /** Requests beyond the first that may wait or, with `nodelay`, go at once. Default 0. */
  readonly burst?: number;
  /** Those of the burst go at once instead of one by one. */
  readonly nodelay?: boolean;
}

/** The options of a policy that lets the same requests pass. */
export interface NginxPolicy {
  readonly algorithm: 'leaky-bucket';
  readonly mode: 'policer' | 'shaper';
  readonly rate: Rate;
  readonly burst: number;
}

const KNOWN: readonly (keyof NginxLimit)[] = ['rate', 'burst', 'nodelay'];
const RATE = /^\d+r\/[sm]$/;

/**
 * A limit of nginx as options of a policy. nginx counts its `burst` beyond the request that is being
 * served, and a bucket holds that one too; so `burst=20` is a bucket of 21. A zone belongs to one
 * nginx: `scope: 'node'` is the same of a service.
 *
 *     policies: { ip: { ...nginxLimit({ rate: '100r/s', burst: 20 }), key: 'ip', scope: 'node' } }
 */
export function nginxLimit(limit: NginxLimit): NginxPolicy {
  plainObject('nginxLimit', limit, 'an object with rate, burst and nodelay');
  rejectUnknown('nginxLimit', limit, KNOWN);
  const { rate, burst = 0, nodelay = false } = limit;
  if (typeof rate !== 'string' || !RATE.test(rate)) {
    throw new InvalidArgumentError('nginxLimit.rate', rate, "a text like '100r/s' or '30r/m'");
  }
  if (burst !== 0) wholeAbove0('nginxLimit.burst', burst);
  if (typeof nodelay !== 'boolean') {
    throw new InvalidArgumentError('nginxLimit.nodelay', nodelay, 'true or false');
  }
  const own = rate.replace('r/', '/');
  const { rate: tokens } = parseRate(own, 'nginxLimit.rate');
  wholeAbove0('nginxLimit.rate', tokens);
  return {
    algorithm: 'leaky-bucket',
    mode: nodelay || burst === 0 ? 'policer' : 'shaper',
    rate: own as Rate,
    burst: burst + 1,
  };
}
