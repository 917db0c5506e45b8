import { type ExecutionContext } from '@nestjs/common';

/**
 * Whose tokens a request takes:
 * `'ip'` the caller's address, IPv6 by network; `'user'` who the application says it is; `'route'`
 * each handler by itself; `'global'` one for all; `{ header }`, `{ param: 'query.q' }` a value of the
 * request; `{ param: 0 }` the first thing that a message carries; a function; or several of them together.
 */
export type KeyOption =
  | 'ip'
  | 'user'
  | 'route'
  | 'global'
  | { readonly header: string }
  | { readonly param: string | number }
  | KeyFunction
  | readonly KeyOption[];

export type KeyFunction = (context: ExecutionContext) => string | number | undefined | null;

/** A value, or what it is for a request. */
export type PerRequest<T> = T | ((context: ExecutionContext) => T);
