import { type RouteFacts } from '../../requests/transport.js';
import { decisive, type Decision } from '../../limiter/decision.js';
import { waitSeconds, writeHeader, type HttpResponse } from './requests.js';

/** Which headers tell callers about their limits. The initial values are the defaults. */
export class HeaderOptions {
  /** `RateLimit` and `RateLimit-Policy` of the IETF draft of that number. */
  draft: 'draft-10' | 'off' = 'draft-10';
  /** `X-RateLimit-Limit`, `-Remaining` and `-Reset` (seconds from now). */
  legacy = false;
  /** `Retry-After` on requests that are denied, or that protection has turned away. */
  retryAfter = true;
}

/**
 * Writes the headers of draft-ietf-httpapi-ratelimit-headers-10, and the usual ones before it. Only
 * policies are shown: the figures of a quota are those of the whole service.
 */
export class RateLimitHeaders {
  /** By name, and by the limit of each of its tiers. */
  private readonly policies = new Map<string, Map<number, string>>();

  constructor(private readonly options: HeaderOptions) {}

  write(response: HttpResponse, decision: Decision, route: RouteFacts): void {
    const { draft, legacy } = this.options;
    const { decisions } = decision;
    if (draft !== 'off') {
      if (decisions === undefined) this.writeOne(response, decision, route);
      else this.writeAll(response, decisions, route);
    }
    if (legacy) this.writeLegacy(response, decision);
    if (!decision.allowed) this.writeRetryAfter(response, decision.retryAfterMs);
  }

  writeRetryAfter(response: HttpResponse, retryAfterMs: number): void {
    if (!this.options.retryAfter) return;
    writeHeader(response, 'Retry-After', String(waitSeconds(retryAfterMs)));
  }

  /** The limits are other ones from now on. */
  forgetFigures(): void {
    this.policies.clear();
  }

  /** They have room for one policy: the one that decided, or the tightest beside a quota. */
  private writeLegacy(response: HttpResponse, decision: Decision): void {
    const policies = (decision.decisions ?? [decision]).filter(({ tier }) => tier === 'policy');
    if (policies.length === 0) return;
    const { limit, remaining, resetMs } = policies.length === 1 ? policies[0]! : decisive(policies);
    writeHeader(response, 'X-RateLimit-Limit', String(limit));
    writeHeader(response, 'X-RateLimit-Remaining', String(remaining));
    writeHeader(response, 'X-RateLimit-Reset', String(secondsUp(resetMs)));
  }

  private writeOne(response: HttpResponse, decision: Decision, route: RouteFacts): void {
    if (decision.tier !== 'policy') return;
    writeHeader(response, 'RateLimit-Policy', this.policyOf(decision, route));
    writeHeader(response, 'RateLimit', limitOf(decision, route));
  }

  private writeAll(response: HttpResponse, all: readonly Decision[], route: RouteFacts): void {
    let policies = '';
    let limits = '';
    for (const decision of all) {
      if (decision.tier !== 'policy') continue;
      const comma = policies === '' ? '' : ', ';
      policies += comma + this.policyOf(decision, route);
      limits += comma + limitOf(decision, route);
    }
    if (policies === '') return;
    writeHeader(response, 'RateLimit-Policy', policies);
    writeHeader(response, 'RateLimit', limits);
  }

  /** The same for every request of a tier, so it is put together once. */
  private policyOf(decision: Decision, route: RouteFacts): string {
    const { windowMs } = decision;
    // There may be as many figures as callers bring along.
    if (windowMs !== undefined) return policyText(decision, route, windowMs);
    const known = this.policies.get(decision.policy)?.get(decision.limit);
    return known ?? this.newPolicy(decision, route);
  }

  private newPolicy(decision: Decision, route: RouteFacts): string {
    const { policy, limit } = decision;
    const text = policyText(decision, route, route.limitOf(policy, limit)?.windowMs);
    const tiers = this.policies.get(policy);
    if (tiers === undefined) this.policies.set(policy, new Map([[limit, text]]));
    else tiers.set(limit, text);
    return text;
  }
}

function policyText(
  { policy, limit }: Decision,
  route: RouteFacts,
  windowMs: number | undefined,
): string {
  const window = windowMs === undefined ? '' : `;w=${Math.max(1, secondsUp(windowMs))}`;
  return `"${route.nameOf(policy)}";q=${limit}${window}`;
}

function limitOf(decision: Decision, route: RouteFacts): string {
  const { policy, remaining, resetMs, retryAfterMs } = decision;
  return `"${route.nameOf(policy)}";r=${remaining};t=${secondsUp(retryAfterMs > 0 ? retryAfterMs : resetMs)}`;
}

function secondsUp(ms: number): number {
  return Math.ceil(ms / 1000);
}
