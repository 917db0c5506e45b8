import {
  VersioningType,
  type ArgumentsHost,
  type ExecutionContext,
  type VersioningOptions,
} from '@nestjs/common';
import { type HttpAdapterHost } from '@nestjs/core';
import { type Decision } from '../../limiter/decision.js';
import { servedPathText } from '../../limits/route-place.js';
import { RequestCounts } from '../../requests/request-counts.js';
import { type TierRequest } from '../../requests/tier.js';
import { HEADERS, SSE } from '../../requests/nest-metadata.js';
import {
  RateLimitedException,
  RefusedException,
  type RefusedBody,
  type RejectionBody,
  type UnansweredBody,
  type UnavailableBody,
} from '../../requests/rejections.js';
import {
  type AnswerFacts,
  type FinishedAnswer,
  type HeaderNames,
  type RequestIdentity,
  type RequestParts,
  type RouteFacts,
  type SubstituteMark,
  type Substitutes,
  type Transport,
} from '../../requests/transport.js';
import { type RateLimitHeaders } from '../shared/rate-limit-headers.js';
import {
  addressOf,
  headerOf,
  removeHeader,
  valueAt,
  writeHeader,
  type AnswerHeaders,
  type HttpRequest,
  type HttpResponse,
  type NodeResponse,
} from '../shared/requests.js';
import { isServerFault, markText, payloadText } from '../shared/substitutes.js';
import { ExpressPeers } from './express-peers.js';
import { degradedProblemOf, problemOf } from './problem.js';
import { type ProxyWarnings } from './proxy-warnings.js';

/** Requests of Express and Fastify. */
export class HttpTransport implements Transport {
  readonly counts = new RequestCounts();
  readonly substitutes: Substitutes;
  private readonly peers = new ExpressPeers();

  constructor(
    private readonly headers: RateLimitHeaders,
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly problemBase: string,
    private readonly proxies: ProxyWarnings,
    /** The versioning of routes, which applications set between their making and the first request. */
    versioning: () => VersioningOptions | undefined,
  ) {
    this.substitutes = new HttpSubstitutes(adapterHost, problemBase, versioning);
  }

  addressOf(context: ExecutionContext): string | undefined {
    const request = requestOf(context);
    this.proxies.look(request);
    return this.peers.of(request) ?? addressOf(request);
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

  rawRequestOf(context: ExecutionContext): TierRequest {
    const request = requestOf(context);
    const [path = ''] = urlOf(request).split('?', 1);
    return { transport: 'http', method: request.method, path, headers: request.headers };
  }

  decided(context: ExecutionContext, decision: Decision, route: RouteFacts): void {
    this.headers.write(context.getArgByIndex<HttpResponse>(1), decision, route);
  }

  rejection(_context: ExecutionContext, decision: Decision): RateLimitedException {
    return new RateLimitedException(decision);
  }

  badRequest(_context: ExecutionContext, body: RefusedBody): Error {
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

  whenAborted(context: ExecutionContext, callback: () => void): () => void {
    const node = nodeResponseOf(context);
    const onClose = (): void => {
      if (node.writableEnded !== true) callback();
    };
    node.on?.('close', onClose);
    // The caller may have gone while the store decided.
    if (node.destroyed === true) queueMicrotask(onClose);
    return () => void node.off?.('close', onClose);
  }

  whenFinished(context: ExecutionContext, callback: (answer: FinishedAnswer) => void): void {
    const node = nodeResponseOf(context);
    node.on?.('finish', () => {
      // HTTP/2 says so, too, of a caller that has hung up.
      if (node.writableEnded === false) return;
      callback({ status: node.statusCode, isEventStream: isEventStream(context) });
    });
  }

  private reply(response: HttpResponse, body: RejectionBody): void {
    const problem = problemOf(body, this.problemBase);
    sendProblem(this.adapterHost, response, problem, body.statusCode);
  }
}

interface DegradableRequest extends HttpRequest {
  /** Express changes `url` inside of routers. */
  readonly originalUrl?: string;
  readonly url: string;
  readonly raw?: NodeRequest;
  /** `Host` as the framework reads it, or `X-Forwarded-Host` where proxies are trusted. */
  readonly host?: unknown;
  /** Of TLS: whether a client has shown a certificate that holds. */
  readonly socket?: HttpRequest['socket'] & { readonly authorized?: boolean };
  /** Names and values in turn, as they came. */
  readonly rawHeaders?: readonly string[];
  /** Express: the route that was found. */
  readonly route?: { readonly path?: unknown };
  /** Fastify: the same. */
  readonly routeOptions?: { readonly url?: string };
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

interface NodeRequest {
  readonly rawHeaders?: readonly string[];
  /** HTTP/2: whether headers are all that was sent. */
  readonly stream?: { readonly endAfterHeaders?: boolean };
}

interface DegradableResponse extends HttpResponse, AnswerHeaders {
  readonly statusCode: number;
  readonly raw?: NodeResponse;
}

/** Requests of Express and Fastify, answered in the place of their handler. */
class HttpSubstitutes implements Substitutes {
  constructor(
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly problemBase: string,
    private readonly versioning: () => VersioningOptions | undefined,
  ) {}

  takes(): boolean {
    return true;
  }

  isRead(context: ExecutionContext): boolean {
    const { method } = requestOf(context);
    return method === 'GET' || method === 'HEAD';
  }

  hasCredentials(context: ExecutionContext, known: HeaderNames): boolean {
    const request = requestOf(context);
    if (request.socket?.authorized === true) return true;
    const { rawHeaders } = request.raw ?? request;
    if (rawHeaders === undefined) return Object.keys(request.headers).some((one) => known.has(one));
    // Node puts the object of headers together when it is first read; here nobody may have.
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (known.has(rawHeaders[i]!)) return true;
    }
    return false;
  }

  trustedUserOf(context: ExecutionContext): unknown {
    return requestOf(context).user;
  }

  varyingHeaderOf(context: ExecutionContext, name: string): string | undefined {
    const request = requestOf(context);
    if (name === 'host' && typeof request.host === 'string') return request.host;
    return headerOf(request, name);
  }

  fingerprintOf(context: ExecutionContext): string {
    const request = requestOf(context);
    const { method, body } = request;
    const url = urlOf(request);
    // The body of a request that only reads tells its answer from others.
    return method === 'GET' && body === undefined ? url : `${method} ${url}\n${payloadText(body)}`;
  }

  identityOf(context: ExecutionContext): RequestIdentity {
    const request = requestOf(context);
    const { method: verb, params, query, body, route, routeOptions } = request;
    if (hasUnreadParts(request)) throw new TypeError('nobody knows what was asked');
    const place = routeOptions?.url ?? route?.path;
    const version = versionOf(request, this.versioning());
    return {
      verb,
      place: typeof place === 'string' ? servedPathText(place, version) : undefined,
      params: params as RequestIdentity['params'],
      query: query as RequestIdentity['query'],
      body: body ?? undefined,
    };
  }

  partsOf(context: ExecutionContext): RequestParts {
    const request = requestOf(context);
    const { params, query, body } = request;
    return { request, params, query, body };
  }

  factsOf(context: ExecutionContext): AnswerFacts {
    const response = responseOf(context);
    return {
      status: response.statusCode,
      setCookie: answerHeader(response, 'set-cookie') !== undefined,
      cacheControl: answerHeader(response, 'cache-control'),
      vary: answerHeader(response, 'vary'),
      contentType: ownHeader(context, response, 'content-type'),
    };
  }

  isAborted(context: ExecutionContext): boolean {
    const response = responseOf(context);
    const { destroyed, writableEnded } = response.raw ?? response;
    return destroyed === true && writableEnded !== true;
  }

  isFailure(error: unknown): boolean {
    return isServerFault(error);
  }

  /** Nothing between here and the caller may keep a substitute. */
  mark(context: ExecutionContext, mark: SubstituteMark): void {
    const { level, ageMs, ttlMs } = mark;
    const response = responseOf(context);
    writeMark(response, markText(mark));
    // The guard has written it for a denial; this is an answer.
    if (mark.reason === 'limited') removeHeader(response, 'Retry-After');
    if (level > 2) return;
    writeHeader(response, 'Age', String(Math.max(0, Math.floor(ageMs / 1000))));
    const ttl = Math.floor(ttlMs / 1000);
    writeHeader(response, 'Cache-Status', `weir; hit; ttl=${ttl}; detail=level${level}`);
  }

  answerWithout(body: UnansweredBody, host: ArgumentsHost): void {
    const response = host.getArgByIndex<HttpResponse>(1);
    writeMark(response, markText({ level: 4, reason: body.reason }));
    const problem = degradedProblemOf(body, this.problemBase);
    sendProblem(this.adapterHost, response, problem, body.statusCode);
  }
}

/** As a text: Nest 11 takes an object for application/json, says so in the log and in the header. */
function sendProblem(
  adapterHost: HttpAdapterHost | undefined,
  response: HttpResponse,
  problem: object,
  statusCode: number,
): void {
  writeHeader(response, 'Content-Type', 'application/problem+json; charset=utf-8');
  adapterHost!.httpAdapter.reply(response, JSON.stringify(problem), statusCode);
}

function writeMark(response: HttpResponse, text: string): void {
  writeHeader(response, 'X-Degraded', text);
  writeHeader(response, 'Cache-Control', 'no-store');
}

/** Of Fastify both the headers of its reply and those that a middleware has put on Node's response. */
function answerHeader(response: DegradableResponse, name: string): string | undefined {
  const values = [response.getHeader(name), response.raw?.getHeader(name)];
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.join(',');
}

/** A header that the handler has set itself; those of its decorators are sent with other answers as well. */
function ownHeader(
  context: ExecutionContext,
  response: DegradableResponse,
  name: string,
): string | undefined {
  const declared = (Reflect.getMetadata(HEADERS, context.getHandler()) ?? []) as { name: string }[];
  if (declared.some((header) => header.name.toLowerCase() === name)) return undefined;
  return answerHeader(response, name);
}

/** A part of the request that no parser has read: the handler may do so by itself. */
function hasUnreadParts(request: DegradableRequest): boolean {
  const { query, body } = request;
  // Files are kept elsewhere than the fields beside them.
  if (/^\s*multipart\//i.test(headerOf(request, 'content-type') ?? '')) return true;
  if ((body ?? undefined) === undefined && hasContent(request)) return true;
  const hasQuery = /\?./.test(urlOf(request));
  return hasQuery && Object.keys(query ?? {}).length === 0;
}

function hasContent(request: DegradableRequest): boolean {
  const { headers } = request;
  if (Number(headers['content-length'] ?? 0) > 0 || 'transfer-encoding' in headers) return true;
  const { stream } = (request.raw ?? request) as NodeRequest;
  return stream?.endAfterHeaders === false;
}

/** The version of a route that a request asks for, where its path does not tell. As Nest reads it. */
function versionOf(
  request: HttpRequest,
  versioning: VersioningOptions | undefined,
): string | undefined {
  switch (versioning?.type) {
    case VersioningType.HEADER:
      return headerOf(request, versioning.header.toLowerCase())?.trim();
    case VersioningType.MEDIA_TYPE:
      return headerOf(request, 'accept')?.split(';')[1]?.split(versioning.key)[1];
    case VersioningType.CUSTOM:
      return [versioning.extractor(request)].flat().join();
    default:
      return undefined;
  }
}

const urlOf = ({ originalUrl, url }: DegradableRequest): string => originalUrl ?? url;

function requestOf(context: ExecutionContext): DegradableRequest {
  return context.getArgByIndex<DegradableRequest>(0);
}

/** Fastify wraps it. */
function nodeResponseOf(context: ExecutionContext): NodeResponse {
  const response = context.getArgByIndex<HttpResponse & NodeResponse>(1);
  return response.raw ?? response;
}

function isEventStream(context: ExecutionContext): boolean {
  const type = responseOf(context).getHeader('content-type');
  if (typeof type === 'string') return type.startsWith('text/event-stream');
  // Nest writes the head of its streams past Fastify, and Node then forgets the type.
  return Reflect.getMetadata(SSE, context.getHandler()) === true;
}

function responseOf(context: ExecutionContext): DegradableResponse {
  return context.getArgByIndex<DegradableResponse>(1);
}
