import { type TierRequest } from '../../requests/tier.js';
import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type Decision } from '../../limiter/decision.js';
import { keepCharge, NOTHING_CHARGED } from '../../limits/charges.js';
import { RequestCounts } from '../../requests/request-counts.js';
import {
  RefusedException,
  type RateLimitedException,
  type RefusedBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import { type RouteFacts, type Transport } from '../../requests/transport.js';
import { type RateLimitHeaders } from '../shared/rate-limit-headers.js';
import {
  addressOf,
  clientBehind,
  headerOf,
  valueAt,
  type HttpRequest,
  type HttpResponse,
  type TrustProxy,
  type UpgradeRequest,
} from '../shared/requests.js';
import { GraphqlRefusal, GraphqlRejection, GraphqlUnavailable } from './graphql-rejection.js';

/** Fields of GraphQL operations; all fields of one operation are one request. */
export class GraphqlTransport implements Transport {
  readonly counts = new RequestCounts();

  constructor(
    private readonly headers: RateLimitHeaders,
    private readonly trustProxy: () => TrustProxy | undefined,
  ) {}

  addressOf(context: ExecutionContext): string | undefined {
    const request = requestOf(callOf(context).context);
    const upgrade = request?.extra?.request;
    if (upgrade === undefined) return request && addressOf(request as HttpRequest);
    const peer = upgrade.socket?.remoteAddress;
    const trust = this.trustProxy();
    if (peer === undefined || trust === undefined) return peer;
    return clientBehind(peer, this.headerOf(context, 'x-forwarded-for'), trust);
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    const request = requestOf(callOf(context).context);
    const headers = request?.extra?.request?.headers ?? request?.headers;
    return headers && headerOf({ headers }, name);
  }

  userOf(context: ExecutionContext): unknown {
    const { context: operation } = callOf(context);
    const request = requestOf(operation);
    const { extra } = request ?? {};
    return operation.user ?? request?.user ?? extra?.user ?? extra?.request?.user;
  }

  /** `args.id` of the field, `variables.id`, `context.tenant`, `req.cookies.id`. */
  valueAt(context: ExecutionContext, path: readonly string[]): unknown {
    const { args, info, context: operation } = callOf(context);
    const variables = info?.variableValues;
    return valueAt({ args, variables, context: operation, req: requestOf(operation) }, path);
  }

  /** `Query.books`, `Mutation.addBook`, `Subscription.bookAdded`, or of a field `Book.author`. */
  methodOf(context: ExecutionContext): string {
    const { info } = callOf(context);
    return `${info?.parentType?.name}.${info?.fieldName}`;
  }

  rawRequestOf(context: ExecutionContext): TierRequest {
    const field = this.methodOf(context);
    const request = requestOf(callOf(context).context);
    const headers = request?.extra?.request?.headers ?? request?.headers ?? {};
    return { transport: 'graphql', method: field, path: field, headers };
  }

  /** True for subscriptions; other operations have come by HTTP, through its line. */
  entersLine(context: ExecutionContext): boolean {
    return requestOf(callOf(context).context)?.extra !== undefined;
  }

  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void {
    const { context: operation } = callOf(context);
    keepCharge(operation, { ...NOTHING_CHARGED, decision });
    const response = responseOf(operation);
    if (response !== undefined) this.headers.write(response, decision, route);
  }

  rejection(_context: ExecutionContext, decision: Decision): RateLimitedException {
    return new GraphqlRejection(decision);
  }

  badRequest(_context: ExecutionContext, body: RefusedBody): Error {
    return new GraphqlRefusal(body);
  }

  /** A filter's result is the field's value, and a value that is an error is thrown by GraphQL. */
  answer(exception: RateLimitedException | RefusedException): Error {
    if (exception instanceof RefusedException) {
      return exception instanceof GraphqlRefusal ? exception : new GraphqlRefusal(exception.body);
    }
    return exception instanceof GraphqlRejection
      ? exception
      : new GraphqlRejection(exception.decision);
  }

  turnAway(body: UnavailableBody, _host: ArgumentsHost, error: Error): GraphqlUnavailable {
    return new GraphqlUnavailable(body, error);
  }

  whenAborted(context: ExecutionContext, callback: () => void): () => void {
    return whenClosed(callOf(context).context, callback);
  }
}

function whenClosed(operation: OperationContext, callback: () => void): () => void {
  const response = responseOf(operation);
  const node = response?.raw ?? response;
  const onClose = (): void => {
    if (node?.writableEnded !== true) callback();
  };
  node?.on?.('close', onClose);
  return () => void node?.off?.('close', onClose);
}

/** The context of an operation, as servers and applications usually fill it. */
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
