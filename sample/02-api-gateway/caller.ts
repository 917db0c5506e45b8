import { Injectable, type CanActivate, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';

export interface Caller {
  readonly user: string | undefined;
  readonly userTier: string;
  readonly merchant: string | undefined;
  readonly merchantTier: string;
}

/** Headers stand in for what a gateway reads from a token. */
@Injectable()
export class CallerGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Request & { caller?: Caller }>();
    request.caller = {
      user: request.get('x-user'),
      userTier: request.get('x-user-tier') ?? 'normal',
      merchant: request.get('x-merchant'),
      merchantTier: request.get('x-merchant-tier') ?? 'normal',
    };
    return true;
  }
}

export function callerOf(context: ExecutionContext): Caller {
  return context.switchToHttp().getRequest<{ caller: Caller }>().caller;
}
