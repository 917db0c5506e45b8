import { type ArgumentsHost, type ExecutionContext } from '@nestjs/common';
import { type HttpAdapterHost } from '@nestjs/core';
import { type DegradeLevel, type DegradeReason } from '../../degradation/index.js';
import {
  isServerFault,
  type AnswerFacts,
  type DegradedException,
  type DegradeMark,
  type DegradeTransport,
  type RequestParts,
} from '../../interceptors/index.js';
import { headerOf, writeHeader, type HttpRequest, type HttpResponse } from './http-requests.js';
import { degradedProblemOf } from './problem.js';

interface DegradableRequest extends HttpRequest {
  /** Express changes `url` inside of routers. */
  readonly originalUrl?: string;
  readonly url: string;
  readonly raw?: { readonly rawHeaders?: readonly string[] };
  /** Names and values in turn, as they came. */
  readonly rawHeaders?: readonly string[];
  readonly params?: unknown;
  readonly query?: unknown;
  readonly body?: unknown;
}

interface DegradableResponse extends HttpResponse {
  readonly statusCode: number;
  getHeader(name: string): string | number | string[] | undefined;
}

/** What says that a request is somebody's, even if nobody knows whose. */
const CREDENTIALS: readonly string[] = [
  'authorization',
  'cookie',
  'proxy-authorization',
  'x-api-key',
];
const LENGTHS: ReadonlySet<number> = new Set(CREDENTIALS.map(({ length }) => length));

/** Requests of Express and Fastify, answered in the place of their handler. */
export class HttpDegradeTransport implements DegradeTransport {
  constructor(
    private readonly adapterHost: HttpAdapterHost | undefined,
    private readonly problemBase: string,
  ) {}

  isRead(context: ExecutionContext): boolean {
    const { method } = requestOf(context);
    return method === 'GET' || method === 'HEAD';
  }

  hasCredentials(context: ExecutionContext): boolean {
    const request = requestOf(context);
    const { rawHeaders } = request.raw ?? request;
    if (rawHeaders === undefined) return CREDENTIALS.some((name) => name in request.headers);
    // Node puts the object of headers together when it is first asked for; here nobody may have.
    for (let i = 0; i < rawHeaders.length; i += 2) {
      const name = rawHeaders[i]!;
      if (LENGTHS.has(name.length) && CREDENTIALS.includes(name.toLowerCase())) return true;
    }
    return false;
  }

  userOf(context: ExecutionContext): unknown {
    return requestOf(context).user;
  }

  headerOf(context: ExecutionContext, name: string): string | undefined {
    return headerOf(requestOf(context), name);
  }

  questionOf(context: ExecutionContext): string {
    const request = requestOf(context);
    const url = request.originalUrl ?? request.url;
    // A body that only asks is a part of the question.
    const isPlain = request.method === 'GET' || request.body === undefined;
    return isPlain ? url : `${url}\n${this.bodyOf(context)}`;
  }

  bodyOf(context: ExecutionContext): string | undefined {
    return JSON.stringify(requestOf(context).body);
  }

  partsOf(context: ExecutionContext): RequestParts {
    const request = requestOf(context);
    const { params, query, body } = request;
    return { request, params, query, body };
  }

  factsOf(context: ExecutionContext): AnswerFacts {
    const response = responseOf(context);
    const cacheControl = response.getHeader('cache-control');
    return {
      status: response.statusCode,
      setCookie: response.getHeader('set-cookie') !== undefined,
      cacheControl: cacheControl === undefined ? undefined : String(cacheControl),
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
  mark(context: ExecutionContext, { level, reason, ageMs, ttlMs }: DegradeMark): void {
    const response = responseOf(context);
    writeMark(response, level, reason);
    if (level > 2) return;
    writeHeader(response, 'Age', String(Math.max(0, Math.floor(ageMs / 1000))));
    const ttl = Math.floor(ttlMs / 1000);
    writeHeader(response, 'Cache-Status', `weir; hit; ttl=${ttl}; detail=level${level}`);
  }

  answer({ body }: DegradedException, host: ArgumentsHost): void {
    const response = host.getArgByIndex<HttpResponse>(1);
    writeMark(response, 4, body.reason);
    writeHeader(response, 'Content-Type', 'application/problem+json; charset=utf-8');
    // As a text: Nest 11 takes an object for application/json, says so in the log and in the header.
    const problem = JSON.stringify(degradedProblemOf(body, this.problemBase));
    this.adapterHost!.httpAdapter.reply(response, problem, body.statusCode);
  }
}

function writeMark(response: HttpResponse, level: DegradeLevel, reason: DegradeReason): void {
  writeHeader(response, 'X-Degraded', `level=${level}; reason=${reason}`);
  writeHeader(response, 'Cache-Control', 'no-store');
}

function requestOf(context: ExecutionContext): DegradableRequest {
  return context.getArgByIndex<DegradableRequest>(0);
}

function responseOf(context: ExecutionContext): DegradableResponse {
  return context.getArgByIndex<DegradableResponse>(1);
}
