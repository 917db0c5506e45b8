import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { keepCharge } from '../../limits/charges.js';
import {
  RefusedException,
  type RateLimitedException,
  type RefusedBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import { type RouteFacts, type Transport } from '../../requests/transport.js';
import { type Decision } from '../../limiter/decision.js';
import { addressOf, headerOf, valueAt, type HttpRequest } from '../shared/requests.js';
import { type RateLimitHeaders } from '../shared/rate-limit-headers.js';
import { clientBehind, type TrustProxy } from '../upgrade-requests.js';
import { GraphqlRefusal, GraphqlRejection, GraphqlUnavailable } from './graphql-rejection.js';
import { callOf, requestOf, responseOf, type OperationContext } from './operations.js';

/** Fields of GraphQL operations; all fields of one operation are one request. */
export class GraphqlTransport implements Transport {
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

  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void {
    const { context: operation } = callOf(context);
    keepCharge(operation, { decision, asked: undefined, ledger: undefined, pending: undefined });
    const response = responseOf(operation);
    if (response !== undefined) this.headers.write(response, decision, route);
  }

  rejection(_context: ExecutionContext, decision: Decision): RateLimitedException {
    return new GraphqlRejection(decision);
  }

  refusal(_context: ExecutionContext, body: RefusedBody): Error {
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
