import { type RouteFacts } from '../../requests/transport.js';
import { decisive, type Decision } from '../../limiter/decision.js';
import { removeHeader, waitSeconds, writeHeader, type HttpResponse } from './requests.js';

/** Which headers tell callers about their limits. The initial values are the defaults. */
export class HeaderOptions {
  /** `RateLimit` and `RateLimit-Policy` of the IETF draft of that number. */
  draft: 'draft-10' | 'off' = 'draft-10';
  /** `X-RateLimit-Limit`, `-Remaining` and `-Reset` (seconds from now). */
  legacy = false;
  /** `Retry-After` on requests that are denied, or that protection has turned away. */
  retryAfter = true;
}

const FIGURES = [
  'RateLimit-Policy',
  'RateLimit',
  'X-RateLimit-Limit',
  'X-RateLimit-Remaining',
  'X-RateLimit-Reset',
];

/**
 * Writes the headers of draft-ietf-httpapi-ratelimit-headers-10, and the usual ones before it. Only
 * policies are shown: the figures of a quota are those of the whole service.
 */
export class RateLimitHeaders {
  /** Texts by the name of the policy. */
  private readonly texts = new Map<string, PolicyTexts>();

  constructor(private readonly options: HeaderOptions) {}

  write(response: HttpResponse, decision: Decision, route: RouteFacts): void {
    const { draft, legacy } = this.options;
    const { decisions } = decision;
    if (!decision.allowed && decision.tier !== 'policy') {
      // Guards before this one may have written of tokens that go back.
      for (const name of FIGURES) removeHeader(response, name);
    }
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
    this.texts.clear();
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
    const texts = this.textsOf(decision, route);
    writeHeader(response, 'RateLimit-Policy', texts.policy);
    writeHeader(response, 'RateLimit', limitText(decision, texts));
  }

  private writeAll(response: HttpResponse, all: readonly Decision[], route: RouteFacts): void {
    let policies = '';
    let limits = '';
    for (const decision of all) {
      if (decision.tier !== 'policy') continue;
      const comma = policies === '' ? '' : ', ';
      const texts = this.textsOf(decision, route);
      policies += comma + texts.policy;
      limits += comma + limitText(decision, texts);
    }
    if (policies === '') return;
    writeHeader(response, 'RateLimit-Policy', policies);
    writeHeader(response, 'RateLimit', limits);
  }

  /** One look, as few policies have tiers. */
  private textsOf(decision: Decision, route: RouteFacts): PolicyTexts {
    const { policy, limit, windowMs } = decision;
    // There may be as many figures as callers bring along.
    if (windowMs !== undefined) return textsFor(decision, route, windowMs);
    const first = this.texts.get(policy);
    return first !== undefined && first.limit === limit
      ? first
      : this.search(decision, route, first);
  }

  private search(
    decision: Decision,
    route: RouteFacts,
    first: PolicyTexts | undefined,
  ): PolicyTexts {
    const { policy, limit } = decision;
    for (let texts = first; texts !== undefined; texts = texts.other) {
      if (texts.limit === limit) return texts;
    }
    const texts = textsFor(decision, route, route.limitOf(policy, limit)?.windowMs, first);
    this.texts.set(policy, texts);
    return texts;
  }
}

/** The parts of the headers that are the same for every request of a tier, put together once. */
interface PolicyTexts {
  readonly limit: number;
  /** All of `RateLimit-Policy`. */
  readonly policy: string;
  /** `RateLimit`, up to the tokens that are left. */
  readonly remaining: string;
  /** Texts of another tier. */
  readonly other: PolicyTexts | undefined;
}

function textsFor(
  { policy, limit }: Decision,
  route: RouteFacts,
  windowMs: number | undefined,
  other?: PolicyTexts,
): PolicyTexts {
  const name = `"${route.nameOf(policy)}"`;
  const window = windowMs === undefined ? '' : `;w=${Math.max(1, secondsUp(windowMs))}`;
  return { limit, policy: `${name};q=${limit}${window}`, remaining: `${name};r=`, other };
}

function limitText({ remaining, resetMs, retryAfterMs }: Decision, texts: PolicyTexts): string {
  const dueMs = retryAfterMs > 0 ? retryAfterMs : resetMs;
  return `${texts.remaining}${remaining};t=${secondsUp(dueMs)}`;
}

function secondsUp(ms: number): number {
  return Math.ceil(ms / 1000);
}
