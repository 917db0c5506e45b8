import { type IncomingMessage, type ServerResponse } from 'node:http';
import { type ExecutionContext } from '@nestjs/common';

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

/** The answer itself, below the framework: what its plugins would add or change must not weaken the page. */
export function rawResponse(response: AnyResponse): ServerResponse {
  response.hijack?.();
  return response.raw ?? response;
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
};

export function begin(
  response: ServerResponse,
  status: number,
  headers: Readonly<Record<string, string>>,
): void {
  response.statusCode = status;
  const all = { ...ALWAYS, 'cache-control': 'no-store', ...headers };
  for (const [name, value] of Object.entries(all)) response.setHeader(name, value);
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
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of raw as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > MOST_BYTES) throw tooLarge();
    parts.push(part);
  }
  try {
    return JSON.parse(Buffer.concat(parts).toString()) as unknown;
  } catch {
    throw new RequestProblem(400, 'The body is not JSON.');
  }
}

const tooLarge = (): RequestProblem =>
  new RequestProblem(413, `The body has more than ${MOST_BYTES} bytes.`);
