import { type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import { type ExecutionContext, type Type } from '@nestjs/common';

/** As Express or Fastify hands them over. */
export type AnyRequest = IncomingMessage & {
  readonly raw?: IncomingMessage;
  readonly body?: unknown;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly user?: unknown;
};
export type AnyResponse = ServerResponse & { readonly raw?: ServerResponse; hijack?(): unknown };

export function rawRequest(context: ExecutionContext): IncomingMessage {
  const request = context.switchToHttp().getRequest<AnyRequest>();
  return request.raw ?? request;
}

/** The host that a browser has asked for; HTTP/2 names it otherwise. */
export function hostOf(headers: IncomingHttpHeaders): string | undefined {
  return headers.host ?? (headers[':authority'] as string | undefined);
}

/** The answer itself, below the framework: what its plugins would add or change must not weaken the page. */
export function rawResponse(response: AnyResponse): ServerResponse {
  response.hijack?.();
  return response.raw ?? response;
}

/** Whether a browser sends this from a page of this host, or of one of these origins; other sites cannot say so. */
export function isFromItsPage(
  headers: IncomingHttpHeaders,
  origins: readonly string[] = [],
): boolean {
  const { origin } = headers;
  if (origin === undefined) return headers['sec-fetch-site'] === 'same-origin';
  const isOwn = URL.canParse(origin) && new URL(origin).host === hostOf(headers);
  return isOwn || origins.includes(origin);
}

/** As @nestjs/swagger names it: the page is no part of an API. */
export function hideFromSwagger(controller: Type): void {
  Reflect.defineMetadata('swagger/apiExcludeController', [true], controller);
}

/** Scripts, styles and data from here alone; nobody may frame the page, and no text becomes a script. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
].join('; ');

const ALWAYS: Readonly<Record<string, string>> = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
  'cross-origin-opener-policy': 'same-origin',
  'cache-control': 'no-store',
};

/** Whoever answers: guards, body parsers and the framework as well. */
export function protect(response: ServerResponse): void {
  for (const [name, value] of Object.entries(ALWAYS)) response.setHeader(name, value);
}

export function begin(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
): void {
  response.statusCode = status;
  protect(response);
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
}

/** What is below the page is found from its folder; false where the request has come there already. */
export function redirectToFolder(request: IncomingMessage, response: ServerResponse): boolean {
  const { pathname, search } = new URL(request.url ?? '/', 'http://localhost');
  if (pathname.endsWith('/')) return false;
  // Relative, as only the browser knows the whole path in front of proxies.
  const location = `${pathname.slice(pathname.lastIndexOf('/') + 1)}/${search}`;
  begin(response, 308, { location });
  response.end();
  return true;
}

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  const type = status < 400 ? 'application/json' : 'application/problem+json';
  const body = Buffer.from(JSON.stringify(value));
  begin(response, status, {
    'content-type': `${type}; charset=utf-8`,
    'content-length': String(body.length),
  });
  response.end(body);
}

/** An answer in place of the one that was asked for; `more` is what the page shows beside the sentence. */
export class RequestProblem extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly more: Readonly<Record<string, unknown>> = {},
  ) {
    super(message);
  }
}

export function sendProblem(
  response: ServerResponse,
  { status, message, more }: RequestProblem,
  headers: Readonly<Record<string, string>> = {},
): void {
  for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
  sendJson(response, { type: 'about:blank', status, detail: message, ...more }, status);
}

const MOST_BYTES = 262_144;

/** The JSON of a request, whether the framework has read it or not. */
export async function bodyOf(request: AnyRequest): Promise<Readonly<Record<string, unknown>>> {
  const raw = request.raw ?? request;
  if (Number(raw.headers['content-length'] ?? 0) > MOST_BYTES) throw tooLarge();
  const body = request.body ?? (await readJson(raw));
  if (typeof body === 'object' && body !== null && !Array.isArray(body)) {
    return body as Readonly<Record<string, unknown>>;
  }
  throw new RequestProblem(400, 'The body has to be a JSON object.');
}

async function readJson(raw: IncomingMessage): Promise<unknown> {
  const text = await readText(raw);
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new RequestProblem(400, 'The body is not JSON.');
  }
}

async function readText(raw: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of raw as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw tooLarge();
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** A field of a form, whether the framework has read it or not; empty where it is not there. */
export async function fieldOf(request: AnyRequest, name: string): Promise<string> {
  const { body } = request;
  const value =
    typeof body === 'object' && body !== null
      ? (body as Readonly<Record<string, unknown>>)[name]
      : new URLSearchParams(
          typeof body === 'string' ? body : await readText(request.raw ?? request),
        ).get(name);
  return typeof value === 'string' ? value : '';
}

const tooLarge = (): RequestProblem =>
  new RequestProblem(413, `The body has more than ${MOST_BYTES} bytes.`);
