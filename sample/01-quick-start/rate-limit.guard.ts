import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import { Reflector } from '@nestjs/core';
import type { Request, Response } from 'express';
import { RateLimiter } from 'nestjs-weir';
import { tooManyRequests } from './too-many-requests.js';

export interface LimitRule {
  readonly policy: string;
  readonly key: (request: Request) => string | undefined;
  readonly tier?: (request: Request) => string | undefined;
}

/** Says which policy a route falls under, and whose tokens it takes. */
export const Limit = Reflector.createDecorator<LimitRule>();

@Injectable()
export class RateLimitGuard implements CanActivate {
  constructor(
    private readonly limiter: RateLimiter,
    private readonly reflector: Reflector,
  ) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const rule = this.reflector.get(Limit, context.getHandler());
    if (rule === undefined) return true;
    const http = context.switchToHttp();
    const request = http.getRequest<Request>();
    const response = http.getResponse<Response>();
    const decision = await this.limiter.tryAcquire({
      policy: rule.policy,
      // Callers without a key share one bucket: leaving a header out must not be a way around.
      key: rule.key(request) || '(none)',
      tier: rule.tier?.(request),
    });
    response.setHeader('X-RateLimit-Limit', decision.limit);
    response.setHeader('X-RateLimit-Remaining', decision.remaining);
    if (!decision.allowed) throw tooManyRequests(response, decision.retryAfterMs);
    return true;
  }
}
