import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type HttpAdapterHost } from '@nestjs/core';
import {
  RateLimitedException,
  RefusedException,
  type RefusedBody,
  type RejectionBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import { type RouteFacts, type Transport } from '../../requests/transport.js';
import { type Decision } from '../../limiter/decision.js';
import {
  addressOf,
  headerOf,
  valueAt,
  writeHeader,
  type HttpRequest,
  type HttpResponse,
} from '../shared/requests.js';
import { problemOf } from './problem.js';
import { type ProxyWarnings } from './proxy-warnings.js';
import { type RateLimitHeaders } from '../shared/rate-limit-headers.js';

/** Requests of Express and Fastify. */
export class HttpTransport implements Transport {
  constructor(
    private readonly headers: RateLimitHeaders,
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly problemBase: string,
    private readonly proxies: ProxyWarnings,
  ) {}

  addressOf(context: ExecutionContext): string | undefined {
    const request = requestOf(context);
    this.proxies.look(request);
    return addressOf(request);
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return headerOf(requestOf(context), name);
  }

  userOf(context: ExecutionContext): unknown {
    return requestOf(context).user;
  }

  valueAt(context: ExecutionContext, path: readonly string[]): unknown {
    return valueAt(requestOf(context), path);
  }

  methodOf(context: ExecutionContext): string {
    return requestOf(context).method;
  }

  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void {
    this.headers.write(context.getArgByIndex<HttpResponse>(1), decision, route);
  }

  rejection(_context: ExecutionContext, decision: Decision): RateLimitedException {
    return new RateLimitedException(decision);
  }

  refusal(_context: ExecutionContext, body: RefusedBody): Error {
    return new RefusedException(body);
  }

  answer({ body }: RateLimitedException | RefusedException, host: ArgumentsHost): void {
    this.reply(host.getArgByIndex<HttpResponse>(1), body);
  }

  /** The handler may have begun to answer; nothing can be said then but that it is over. */
  turnAway(body: UnavailableBody, host: ArgumentsHost): void {
    const response = host.getArgByIndex<HttpResponse>(1);
    const { httpAdapter } = this.adapterHost!;
    if (httpAdapter.isHeadersSent(response)) return void httpAdapter.end(response);
    const { retryAfterMs } = body;
    if (retryAfterMs !== undefined) this.headers.writeRetryAfter(response, retryAfterMs);
    writeHeader(response, 'Cache-Control', 'no-store');
    this.reply(response, body);
  }

  takesHandOver(): boolean {
    return true;
  }

  whenAborted(context: ExecutionContext, callback: () => void): () => void {
    const response = context.getArgByIndex<HttpResponse>(1);
    const node = response.raw ?? (response as Required<HttpResponse>);
    const onClose = (): void => {
      if (node.writableEnded !== true) callback();
    };
    node.on('close', onClose);
    // It may have gone while the store was asked.
    if (node.destroyed === true) queueMicrotask(onClose);
    return () => node.off('close', onClose);
  }

  private reply(response: HttpResponse, body: RejectionBody): void {
    writeHeader(response, 'Content-Type', 'application/problem+json; charset=utf-8');
    // As a text: Nest 11 takes an object for application/json, says so in the log and in the header.
    const problem = JSON.stringify(problemOf(body, this.problemBase));
    this.adapterHost!.httpAdapter.reply(response, problem, body.statusCode);
  }
}

function requestOf(context: ExecutionContext): HttpRequest {
  return context.getArgByIndex<HttpRequest>(0);
}
