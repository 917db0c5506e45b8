import { type ArgumentsHost, type ExecutionContext, type VersioningOptions } from '@nestjs/common';
import { type HttpAdapterHost } from '@nestjs/core';
import { servedPathText } from '../../limits/route-place.js';
import { type CredentialHeaders } from '../../degradation/credential-headers.js';
import {
  type AnswerFacts,
  type Asked,
  type DegradeMark,
  type DegradeTransport,
  type RequestParts,
} from '../../degradation/degrade-transport.js';
import { type DegradedException } from '../../degradation/degraded.exception.js';
import { isServerFault } from '../../degradation/failures.js';
import { markText } from '../shared/substitutes.js';
import {
  headerOf,
  removeHeader,
  writeHeader,
  type HttpRequest,
  type HttpResponse,
  type NodeResponse,
} from '../shared/requests.js';
import { degradedProblemOf } from './problem.js';
import { versionOf } from './request-version.js';

/** Where Nest keeps what stands in @Header. */
const HEADERS = '__headers__';

interface DegradableRequest extends HttpRequest {
  /** Express changes `url` inside of routers. */
  readonly originalUrl?: string;
  readonly url: string;
  readonly raw?: NodeRequest;
  /** What the framework makes of `Host`, and of `X-Forwarded-Host` where proxies are trusted. */
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

interface AnswerHeaders {
  getHeader(name: string): string | number | string[] | undefined;
}

interface DegradableResponse extends Omit<HttpResponse, 'raw'>, AnswerHeaders {
  readonly statusCode: number;
  readonly raw?: NodeResponse & AnswerHeaders;
}

/** Requests of Express and Fastify, answered in the place of their handler. */
export class HttpDegradeTransport implements DegradeTransport {
  constructor(
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly problemBase: string,
    private readonly versioning: () => VersioningOptions | undefined,
  ) {}

  isRead(context: ExecutionContext): boolean {
    const { method } = requestOf(context);
    return method === 'GET' || method === 'HEAD';
  }

  hasCredentials(context: ExecutionContext, known: CredentialHeaders): boolean {
    const request = requestOf(context);
    if (request.socket?.authorized === true) return true;
    const { rawHeaders } = request.raw ?? request;
    if (rawHeaders === undefined) return Object.keys(request.headers).some((one) => known.has(one));
    // Node puts the object of headers together when it is first asked for; here nobody may have.
    for (let i = 0; i < rawHeaders.length; i += 2) {
      if (known.has(rawHeaders[i]!)) return true;
    }
    return false;
  }

  userOf(context: ExecutionContext): unknown {
    return requestOf(context).user;
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    const request = requestOf(context);
    if (name === 'host' && typeof request.host === 'string') return request.host;
    return headerOf(request, name);
  }

  questionOf(context: ExecutionContext): string {
    const request = requestOf(context);
    const { method, body } = request;
    const url = urlOf(request);
    // A body that only asks is a part of the question.
    return method === 'GET' && body === undefined
      ? url
      : `${method} ${url}\n${JSON.stringify(body)}`;
  }

  askedOf(context: ExecutionContext): Asked {
    const request = requestOf(context);
    const { method: verb, params, query, body, route, routeOptions } = request;
    if (hasUnreadParts(request)) throw new TypeError('nobody knows what was asked');
    const place = routeOptions?.url ?? route?.path;
    const version = versionOf(request, this.versioning());
    return {
      verb,
      place: typeof place === 'string' ? servedPathText(place, version) : undefined,
      params: params as Asked['params'],
      query: query as Asked['query'],
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

  /** Nothing between here and the caller may keep what is only a makeshift. */
  mark(context: ExecutionContext, mark: DegradeMark): void {
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

  answer({ body }: DegradedException, host: ArgumentsHost): void {
    const response = host.getArgByIndex<HttpResponse>(1);
    writeMark(response, markText({ level: 4, reason: body.reason }));
    writeHeader(response, 'Content-Type', 'application/problem+json; charset=utf-8');
    // As a text: Nest 11 takes an object for application/json, says so in the log and in the header.
    const problem = JSON.stringify(degradedProblemOf(body, this.problemBase));
    this.adapterHost!.httpAdapter.reply(response, problem, body.statusCode);
  }
}

function writeMark(response: HttpResponse, text: string): void {
  writeHeader(response, 'X-Degraded', text);
  writeHeader(response, 'Cache-Control', 'no-store');
}

/** Of Fastify both what its reply has and what a middleware has put on Node's response. */
function answerHeader(response: DegradableResponse, name: string): string | undefined {
  const values = [response.getHeader(name), response.raw?.getHeader(name)];
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : known.join(',');
}

/** One that the handler has set itself; what its decorators say is said of other answers as well. */
function ownHeader(
  context: ExecutionContext,
  response: DegradableResponse,
  name: string,
): string | undefined {
  const declared = (Reflect.getMetadata(HEADERS, context.getHandler()) ?? []) as { name: string }[];
  if (declared.some((header) => header.name.toLowerCase() === name)) return undefined;
  return answerHeader(response, name);
}

/** A part of the question that no parser has read: the handler may do so by itself. */
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

const urlOf = ({ originalUrl, url }: DegradableRequest): string => originalUrl ?? url;

function requestOf(context: ExecutionContext): DegradableRequest {
  return context.getArgByIndex<DegradableRequest>(0);
}

function responseOf(context: ExecutionContext): DegradableResponse {
  return context.getArgByIndex<DegradableResponse>(1);
}
