import { type ArgumentsHost } from '@nestjs/common';
import { type HttpRequest, type HttpResponse } from '../shared/requests.js';
import { type UpgradeRequest } from '../upgrade-requests.js';

/** What servers and applications usually put into the context of an operation. */
export interface OperationContext {
  readonly req?: OperationRequest;
  readonly request?: OperationRequest;
  readonly res?: HttpResponse;
  /** Mercurius. */
  readonly reply?: HttpResponse;
  readonly user?: unknown;
}

/** A request of Express or Fastify; for subscriptions what graphql-ws knows of the connection. */
export interface OperationRequest extends Partial<HttpRequest> {
  readonly res?: HttpResponse;
  readonly extra?: { readonly request?: UpgradeRequest; readonly user?: unknown };
}

export interface ResolveInfo {
  readonly operation?: { readonly operation?: string };
  readonly parentType?: { readonly name?: string };
  readonly fieldName?: string;
  readonly variableValues?: object;
}

/** The arguments of a resolver by name; those of federation references have no `args`. */
export interface ResolverCall {
  readonly args: unknown;
  readonly context: OperationContext;
  readonly info: ResolveInfo | undefined;
}

export function callOf(host: ArgumentsHost): ResolverCall {
  const list = host.getArgs<unknown[]>();
  const [, args, context, info] = list.length === 3 ? [list[0], undefined, ...list.slice(1)] : list;
  return {
    args,
    context: typeof context === 'object' && context !== null ? context : {},
    info: info as ResolveInfo | undefined,
  };
}

export function requestOf({ req, request }: OperationContext): OperationRequest | undefined {
  return req ?? request;
}

/** Express knows a request's response, which the context of Apollo does not have by itself. */
export function responseOf(context: OperationContext): HttpResponse | undefined {
  return context.res ?? context.reply ?? requestOf(context)?.res;
}
