import { type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';

// The headers stand in for what a real app knows about a caller once it has logged in.

export const userOf = (context: ExecutionContext): string | undefined =>
  requestOf(context).get('x-user');

export const tierOf = (context: ExecutionContext): string | undefined =>
  requestOf(context).get('x-tier');

const requestOf = (context: ExecutionContext): Request =>
  context.switchToHttp().getRequest<Request>();
